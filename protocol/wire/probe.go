package wire

import "github.com/heddle-live/heddle/protocol/varint"

// Probe carries a bitrate in bits per second (the subscriber's target or the
// publisher's estimate) and a round-trip time in milliseconds; 0 is unknown.
type Probe struct {
	Bitrate uint64
	RTTMS   uint64
}

// AppendProbe appends the message with its length.
func AppendProbe(dst []byte, m Probe) []byte {
	start := len(dst)
	dst = varint.Append(dst, m.Bitrate)
	dst = varint.Append(dst, m.RTTMS)
	return lengthen(dst, start)
}

// ParseProbe parses a body.
func ParseProbe(msg []byte) (Probe, error) {
	b := body{rest: msg}
	m := Probe{Bitrate: b.integer("bitrate"), RTTMS: b.integer("rtt")}
	return m, b.end("PROBE")
}
