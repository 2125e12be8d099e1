package wire

import (
	"fmt"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
)

// Delivery is what SUBSCRIBE and SUBSCRIBE_UPDATE have in common; an update
// replaces all of it. Higher Priority goes first. Start absent means the latest
// group; End is the last group wanted, inclusive. The Ordered byte of the wire
// is dead: written 0, not kept.
type Delivery struct {
	Priority     uint8
	MaxLatencyMS uint64
	Start        Optional
	End          Optional
}

func appendDelivery(dst []byte, m Delivery) []byte {
	dst = append(dst, m.Priority, 0)
	dst = varint.Append(dst, m.MaxLatencyMS)
	dst = appendOptional(dst, m.Start)
	return appendOptional(dst, m.End)
}

func (b *body) delivery() Delivery {
	var m Delivery
	m.Priority = b.octet("priority")
	b.boolean("ordered")
	m.MaxLatencyMS = b.integer("max latency")
	m.Start = b.optional("group start")
	m.End = b.optional("group end")
	if m.Start.Set && m.End.Set && m.End.Value < m.Start.Value {
		b.fail("group end", fmt.Errorf("%w: before the start", ErrViolation))
	}
	return m
}

// Subscribe asks for a track's groups; first message of a Subscribe stream. An
// ID is never used twice in a session.
type Subscribe struct {
	ID        uint64
	Broadcast protocol.Path
	Track     string
	Delivery
}

// AppendSubscribe appends the message with its length.
func AppendSubscribe(dst []byte, m Subscribe) []byte {
	start := len(dst)
	dst = varint.Append(dst, m.ID)
	dst = appendString(dst, m.Broadcast)
	dst = appendString(dst, m.Track)
	dst = appendDelivery(dst, m.Delivery)
	return lengthen(dst, start)
}

// ParseSubscribe parses a body.
func ParseSubscribe(msg []byte) (Subscribe, error) {
	b := body{rest: msg}
	m := Subscribe{
		ID:        b.integer("id"),
		Broadcast: b.path("broadcast"),
		Track:     b.name("track"),
	}
	m.Delivery = b.delivery()
	return m, b.end("SUBSCRIBE")
}

// SubscribeUpdate changes a running subscription; any number may follow a
// SUBSCRIBE on its stream.
type SubscribeUpdate struct{ Delivery }

// AppendSubscribeUpdate appends the message with its length.
func AppendSubscribeUpdate(dst []byte, m SubscribeUpdate) []byte {
	start := len(dst)
	return lengthen(appendDelivery(dst, m.Delivery), start)
}

// ParseSubscribeUpdate parses a body.
func ParseSubscribeUpdate(msg []byte) (SubscribeUpdate, error) {
	b := body{rest: msg}
	m := SubscribeUpdate{b.delivery()}
	return m, b.end("SUBSCRIBE_UPDATE")
}
