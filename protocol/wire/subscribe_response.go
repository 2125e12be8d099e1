package wire

import (
	"fmt"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
)

// ResponseType tells the publisher's messages on a Subscribe stream apart; it
// stands before the length. Clients take a type they do not know for the clean
// end of the track, so no other may be sent.
type ResponseType uint64

// Response types of moq-lite-05.
const (
	ResponseStart ResponseType = 0
	ResponseEnd   ResponseType = 1
	ResponseDrop  ResponseType = 2
)

// SubscribeStart names the first group that will be delivered.
type SubscribeStart struct{ Group uint64 }

// AppendSubscribeStart appends type, length and body.
func AppendSubscribeStart(dst []byte, m SubscribeStart) []byte {
	return appendResponse(dst, ResponseStart, m.Group)
}

// ParseSubscribeStart parses a body.
func ParseSubscribeStart(msg []byte) (SubscribeStart, error) {
	b := body{rest: msg}
	m := SubscribeStart{b.integer("group")}
	return m, b.end("SUBSCRIBE_START")
}

// SubscribeEnd says that the track ended: no group at or above Group will come.
// The draft of 05 calls it inclusive; what is deployed, and this, is exclusive.
type SubscribeEnd struct{ Group uint64 }

// AppendSubscribeEnd appends type, length and body.
func AppendSubscribeEnd(dst []byte, m SubscribeEnd) []byte {
	return appendResponse(dst, ResponseEnd, m.Group)
}

// ParseSubscribeEnd parses a body.
func ParseSubscribeEnd(msg []byte) (SubscribeEnd, error) {
	b := body{rest: msg}
	m := SubscribeEnd{b.integer("group")}
	return m, b.end("SUBSCRIBE_END")
}

// SubscribeDrop says that the groups First to Last, inclusive, will not come.
// Code 0 means that they are merely not available.
type SubscribeDrop struct {
	First, Last uint64
	Code        protocol.StreamCode
}

// AppendSubscribeDrop appends type, length and body.
func AppendSubscribeDrop(dst []byte, m SubscribeDrop) []byte {
	return appendResponse(dst, ResponseDrop, m.First, m.Last, uint64(m.Code))
}

// ParseSubscribeDrop parses a body.
func ParseSubscribeDrop(msg []byte) (SubscribeDrop, error) {
	b := body{rest: msg}
	m := SubscribeDrop{
		First: b.integer("first group"),
		Last:  b.integer("last group"),
		Code:  protocol.StreamCode(b.integer("code")),
	}
	if b.err == nil && m.Last < m.First {
		b.fail("last group", fmt.Errorf("%w: before the first", ErrViolation))
	}
	return m, b.end("SUBSCRIBE_DROP")
}

func appendResponse(dst []byte, t ResponseType, fields ...uint64) []byte {
	dst = varint.Append(dst, uint64(t))
	start := len(dst)
	for _, f := range fields {
		dst = varint.Append(dst, f)
	}
	return lengthen(dst, start)
}
