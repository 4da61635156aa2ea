"""IGT SAS 6.x: what a host asks a slot machine, and what the machine answers.

Source: public restatements of the SAS 6.02 text, a public guide of a regulator and four independent public programs,
one of them a vendor's own machine; `tests/foreign/test_sas_vectors.py` names them beside their bytes. "Assumed" marks
what rests on one source or on common practice alone. `frames` has `encode` and the two decoders, `messages` what they
carry, `tables` exceptions, meters and polls.

19200 baud, eight bits and a ninth, the wakeup bit, set on the first byte of each message of the host. The link sets
that bit, which is not visible here. Three kinds of poll: general (one byte, 80 hex + address; the answer is one byte,
an exception, *without any checksum*), R (address and command, no checksum), S, M and G (with data, with a checksum; M
begins with a game number, G is for every machine, address 0, and unanswered). Answers to R and M: address, command,
data, checksum; to S the bare address (taken) or address + 80 hex (not taken). Address and 00 is busy. Unknown polls are
not answered. In real time mode address, FF, exception, data, checksum may come in place of any answer.

BCD and text come most significant byte first, binary numbers and the checksum (CRC-16/KERMIT) low byte first. Messages
of variable length carry a byte that counts what follows it, without the checksum. Text is read leniently: machines fill
it with NUL, blanks or any byte. An answer with a good checksum is never `Garbage`: where its content is not known here,
or it answers another poll, it is `Unknown`.

What an answer means depends on the question: `HostDecoder.expect` takes the poll that was sent. Both decoders take any
bytes in any pieces, never raise, and need `quiet` after a pause (more than the 5 ms a message may pause in itself):
single bytes are decided by the pause after them, and bytes out of step are dropped until a pause.
"""
