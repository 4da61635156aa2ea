"""The fault list of the Cammegh SS2 wheel."""

from drivers.faults import Fault
from protocols.cammegh_ss2 import SELF_TEST

LOOK = "look at the sensors, the motor and the encoder in the order of the vendor's service manual"

SELF_TEST_REMEDIES = {
    1: "switch the wheel off and on; if it stays, call the vendor",
    2: "put the ball into the track",
    3: "turn the rotor by hand, take the ball out and put it into the track",
    4: "look whether air jet or launcher is turned or loose; clean the ball track",
    5: "look whether something blocks the rotor; check the motor's plug and belt",
    6: "check the encoder's plug and disc",
    7: "play anticlockwise only, and call the vendor",
    8: "play clockwise only, and call the vendor",
    **dict.fromkeys((11, 12, 13), "take away what covers the sensor, clean it, check its plug"),
    **dict.fromkeys((21, 22, 23), "clean the sensor and its mirror, check its plug"),
    100: "free rotor and ball",
}

GOES_ON = "the spin goes on and counts"

UNTOUCHED = "no spin runs while the wheel tests itself; found in play, the spin ends as its other lines report"

FAULTS = (
    Fault(
        "wheel.launch_failed",
        "the launch fails: for 3 s or more within one spin",
        "look for the ball and the air jet; the controller tries again by itself, else void the spin",
        "by itself",
        GOES_ON,
    ),
    Fault(
        "wheel.ball_with_rotor",
        "the ball turns with the rotor, or something hit it",
        "let it spin again; if it comes back: look for a foreign object on the track, clean ball and track",
        "by itself",
        "void, and spun again",
    ),
    Fault(
        "wheel.ball_not_detected",
        "the ball is not seen for more than 5 s after no more bets",
        "look whether the ball left the track; put it back; clean the rim sensors",
        "by itself",
        "void, and spun again",
        "error",
    ),
    Fault(
        "wheel.sensor_or_motor",
        "sensor, motor or encoder fault; the wheel powers down",
        f"run the self-test while the table is closed, to learn which; {LOOK}",
        "by a person",
        "void: the wheel stops",
        "error",
    ),
    Fault(
        "wheel.no_ball",
        "no ball is seen in the track",
        "put the ball into the track",
        "by a person",
        "void, and spun again",
        "error",
    ),
    Fault(
        "wheel.no_number",
        "no more bets for more than 90 s, and no number",
        "look where the ball is; void the spin and restart the game at the wheel",
        "by a person",
        "open until the wheel goes on or somebody voids it",
        "error",
    ),
    Fault(
        "wheel.number_unsteady",
        "the lines of one spin name different numbers",
        "compare with the pocket in which the ball lies before paying; look for a loose separator or a bad cable",
        "by itself",
        "counts where its later lines agree; else it is missed; void where it changed after it was reported",
    ),
    Fault(
        "wheel.dropped",
        "the wheel closed the table in the middle of a spin",
        "if nobody closed it: look at mains and emergency stop, run the self-test, switch it on again",
        "by a person",
        "void",
    ),
    Fault(
        "wheel.restart_refused",
        "the wheel does not take the restart after a void spin",
        "restart the game at the wheel, or switch the wheel off and on",
        "by a person",
        "void already",
        "error",
    ),
    Fault(
        "wheel.rotor_not_reversed",
        "two spins running with the rotor turning the same way",
        "check that the wheel's mode has bit 1, reverse each game; run the self-test to see whether it can turn back",
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
        "the self-test reports a code that no manual of ours has",
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
