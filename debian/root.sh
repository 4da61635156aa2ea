# Shared by debian/try, debian/try-systemd and debian/try-attacks: a bare Debian with the package and its dependencies, in $root:
# the Debian whose number ends the package's version.
#
# The root is made by mmdebstrap from the sources that apt is configured with, whichever of the two Debians they name. All further steps run in a network namespace without
# a route outside, which shows that the installation needs no internet, and uses no port of this computer.

skip() { echo "$0: skipped: $1"; exit 0; }
step() { # name command…
  local start=$EPOCHREALTIME name=$1; shift
  "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; echo "FAILED: $name"; exit 1; }
  awk -v a="$start" -v b="$EPOCHREALTIME" -v name="$name" 'BEGIN { printf "%7.1f s  %s\n", b - a, name }'
}
expect() { # what command…
  local what=$1; shift
  "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "FAILED: $what"; exit 1; }
  echo "       ok  $what"
}
within() { DEBIAN_FRONTEND=noninteractive chroot "$root" /usr/bin/env -u FELTD_INSIDE PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
until_true() { # seconds command…
  local end=$((SECONDS + $1)); shift
  until "$@"; do [ $SECONDS -lt $end ] || { tail -n 20 "$work"/*.log; return 1; }; sleep 0.2; done
}

WORST=1.5 # of each unit by `systemd-analyze security`, 0 to 10
verified() { within sh -c 'said=$(systemd-analyze verify --man=no /lib/systemd/system/feltd-*.service 2>&1) && ! echo "$said" | grep feltd-'; }
scored() { # unit, words for systemd-analyze…
  local unit=$1 score; shift
  score=$(within systemd-analyze security --no-pager "$@" | sed -n 's/.*Overall exposure level.*: \([0-9.]*\).*/\1/p')
  echo "           $unit: systemd-analyze security $score"
  expect "$unit is at $WORST or better" awk -v score="$score" -v worst="$WORST" 'BEGIN { exit !(score != "" && score <= worst) }'
}

bare_root() { # further packages, joined by commas
  [ "$(id -u)" = 0 ] || skip "only root can make a Debian root"
  for tool in mmdebstrap unshare ip chroot mount; do command -v $tool >/dev/null || skip "no $tool on this computer"; done
  unshare --net --mount --pid --fork true 2>/dev/null || skip "this computer allows no namespaces"
  [ "$(dpkg-deb -f "$package" Architecture)" = "$(dpkg --print-architecture)" ] || skip "$package is for another processor"
  sources
  step "a bare Debian $debian (download)" mmdebstrap --variant=apt ${1:+--include=$1} $codename "$root" "$work"/sources/*
  cp "$package" "$root/feltd.deb"
  step "the packages it depends on (download)" within apt-get update
  step "(the same)" within apt-get install -y --no-install-recommends --download-only ./feltd.deb
}

sources() { # of the Debian that the package is for: $debian, $codename, and apt's own sources for it in $work/sources
  version=$(dpkg-deb -f "$package" Version)
  debian=${version##*+deb}
  case $debian in 12) codename=bookworm ;; 13) codename=trixie ;; *) echo "$package: for which Debian?"; exit 2 ;; esac
  mkdir "$work/sources"
  for source in $(grep -lsE '(^|[[:space:]])(bookworm|trixie)([[:space:]]|$)' /etc/apt/sources.list /etc/apt/sources.list.d/*); do
    sed -E "s/(bookworm|trixie)/$codename/g" "$source" >"$work/sources/${source##*/}"
  done
  [ -n "$(ls "$work/sources")" ] || skip "apt is configured with no source of bookworm or trixie"
  grep -q "^VERSION_CODENAME=$codename$" /etc/os-release && return
  mkdir -p "$work/lists/partial"
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" -o Dir::State::Lists="$work/lists" \
    --error-on=any update >/dev/null 2>&1 || skip "no $codename where this computer's apt looks"
}
