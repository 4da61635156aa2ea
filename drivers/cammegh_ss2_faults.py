"""The fault list of the Cammegh SS2 wheel."""

from drivers.faults import Fault
from protocols.cammegh_ss2 import SELF_TEST

LOOK = "check the sensors, the motor and the encoder in the order of the vendor's service manual"

SELF_TEST_REMEDIES = {
    1: "switch the wheel off and on; if the fault remains, call the vendor",
    2: "put the ball into the track",
    3: "turn the rotor by hand, take the ball out and put it into the track",
    4: "check whether the air jet or the launcher is turned or loose; clean the ball track",
    5: "check whether something blocks the rotor; check the motor's plug and belt",
    6: "check the encoder's plug and disc",
    7: "play anticlockwise only, and call the vendor",
    8: "play clockwise only, and call the vendor",
    **dict.fromkeys((11, 12, 13), "take away what covers the sensor, clean it, check its plug"),
    **dict.fromkeys((21, 22, 23), "clean the sensor and its mirror, check its plug"),
    100: "free rotor and ball",
}

GOES_ON = "the spin goes on and counts"

UNTOUCHED = "no spin runs during a self-test; if the fault is found in play, the spin ends as its other lines report"

FAULTS = (
    Fault(
        "wheel.launch_failed",
        "the launch fails for 3 s or more within one spin",
        "check the ball and the air jet; the controller tries again by itself; if it fails again, void the spin",
        "by itself",
        GOES_ON,
    ),
    Fault(
        "wheel.ball_with_rotor",
        "the ball turns with the rotor, or something hit it",
        "let the wheel spin again; if it happens again, look for a foreign object on the track, clean ball and track",
        "by itself",
        "void, and spun again",
    ),
    Fault(
        "wheel.ball_not_detected",
        "the ball is not detected for more than 5 s after no more bets",
        "check whether the ball left the track; put it back; clean the rim sensors",
        "by itself",
        "void, and spun again",
        "error",
    ),
    Fault(
        "wheel.sensor_or_motor",
        "sensor, motor or encoder fault; the wheel powers down",
        f"run the self-test while the table is closed, to find the faulty part; {LOOK}",
        "by a person",
        "void: the wheel stops",
        "error",
    ),
    Fault(
        "wheel.no_ball",
        "no ball is detected in the track",
        "put the ball into the track",
        "by a person",
        "void, and spun again",
        "error",
    ),
    Fault(
        "wheel.no_number",
        "no number for more than 90 s after no more bets",
        "find the ball; void the spin and restart the game at the wheel",
        "by a person",
        "open until the wheel goes on or a person voids it",
        "error",
    ),
    Fault(
        "wheel.number_unsteady",
        "the lines of one spin name different numbers",
        "before paying, compare the number with the pocket in which the ball lies; look for a loose separator or a bad "
        "cable",
        "by itself",
        "counts if its later lines agree, else missed; void if the number changed after it was reported",
    ),
    Fault(
        "wheel.dropped",
        "the wheel closed the table in the middle of a spin",
        "if nobody closed it, check mains and emergency stop, run the self-test, switch the wheel on again",
        "by a person",
        "void",
    ),
    Fault(
        "wheel.restart_refused",
        "the wheel does not accept the restart after a void spin",
        "restart the game at the wheel, or switch the wheel off and on",
        "by a person",
        "void already",
        "error",
    ),
    Fault(
        "wheel.rotor_not_reversed",
        "the rotor turned the same way in two successive spins",
        "check that bit 1 of the wheel's mode is set (reverse each game); run the self-test to check both directions",
        "by itself",
        GOES_ON,
    ),
    Fault(
        "wheel.bonus_licence",
        "the licence of the bonus numbers has run out",
        "ask the vendor for a licence, or switch mode bit 32768 off",
        "by a person",
        GOES_ON,
    ),
    *(
        Fault(
            f"wheel.self_test_{code}",
            f"self-test {code}: {text}",
            f"{SELF_TEST_REMEDIES[code]}; then run the self-test again",
            "by a person",
            UNTOUCHED,
            "error",
        )
        for code, text in SELF_TEST.items()
    ),
    Fault(
        "wheel.self_test_other",
        "the self-test reports an unknown code",
        f"{LOOK}; send the code to the maintainers",
        "by a person",
        UNTOUCHED,
        "error",
    ),
)

TESTED = tuple(fault.code for fault in FAULTS if "self_test" in fault.code)


def self_test_fault(code: int) -> str:
    """The fault for a code of the self-test."""
    return f"wheel.self_test_{code}" if code in SELF_TEST else "wheel.self_test_other"
