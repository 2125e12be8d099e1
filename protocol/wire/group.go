package wire

import "github.com/heddle-live/heddle/protocol/varint"

// Group begins a Group stream; frames follow until its FIN.
type Group struct {
	SubscribeID uint64
	Sequence    uint64
}

// MaxGroupBytes bounds an encoded GROUP with its length.
const MaxGroupBytes = 1 + 2*varint.MaxLen

// AppendGroup appends the message with its length.
func AppendGroup(dst []byte, m Group) []byte {
	dst = append(dst, byte(varint.Len(m.SubscribeID)+varint.Len(m.Sequence)))
	dst = varint.Append(dst, m.SubscribeID)
	return varint.Append(dst, m.Sequence)
}

// ParseGroup parses a body.
func ParseGroup(msg []byte) (Group, error) {
	b := body{rest: msg}
	m := Group{SubscribeID: b.integer("subscribe id"), Sequence: b.integer("sequence")}
	return m, b.end("GROUP")
}
