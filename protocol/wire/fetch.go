package wire

import (
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
)

// Fetch asks for one group; the only message that a subscriber sends on a Fetch
// stream. The answer is the group's frames and a FIN.
type Fetch struct {
	Broadcast protocol.Path
	Track     string
	Priority  uint8
	Group     uint64
}

// AppendFetch appends the message with its length.
func AppendFetch(dst []byte, m Fetch) []byte {
	start := len(dst)
	dst = appendString(dst, m.Broadcast)
	dst = appendString(dst, m.Track)
	dst = append(dst, m.Priority)
	dst = varint.Append(dst, m.Group)
	return lengthen(dst, start)
}

// ParseFetch parses a body.
func ParseFetch(msg []byte) (Fetch, error) {
	b := body{rest: msg}
	m := Fetch{
		Broadcast: b.path("broadcast"),
		Track:     b.name("track"),
		Priority:  b.octet("priority"),
		Group:     b.integer("group"),
	}
	return m, b.end("FETCH")
}
