package wire

import (
	"fmt"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
)

// AnnounceRequest asks for the announcements below Prefix, without those whose
// hops contain ExcludeHop (0 excludes none). First message of an Announce
// stream, from the subscriber.
type AnnounceRequest struct {
	Prefix     protocol.Path
	ExcludeHop protocol.HopID
}

// AppendAnnounceRequest appends the message with its length.
func AppendAnnounceRequest(dst []byte, m AnnounceRequest) []byte {
	start := len(dst)
	dst = appendString(dst, m.Prefix)
	dst = varint.Append(dst, uint64(m.ExcludeHop))
	return lengthen(dst, start)
}

// ParseAnnounceRequest parses a body.
func ParseAnnounceRequest(msg []byte) (AnnounceRequest, error) {
	b := body{rest: msg}
	m := AnnounceRequest{
		Prefix:     b.path("prefix"),
		ExcludeHop: protocol.HopID(b.integer("exclude hop")),
	}
	return m, b.end("ANNOUNCE_REQUEST")
}

// AnnounceOK is the publisher's first message on an Announce stream. HopID is
// the implicit last hop of every announcement on it; Active is the number of
// announcements that follow at once as the initial set.
type AnnounceOK struct {
	HopID  protocol.HopID
	Active uint64
}

// AppendAnnounceOK appends the message with its length.
func AppendAnnounceOK(dst []byte, m AnnounceOK) []byte {
	start := len(dst)
	dst = varint.Append(dst, uint64(m.HopID))
	dst = varint.Append(dst, m.Active)
	return lengthen(dst, start)
}

// ParseAnnounceOK parses a body.
func ParseAnnounceOK(msg []byte) (AnnounceOK, error) {
	b := body{rest: msg}
	m := AnnounceOK{
		HopID:  protocol.HopID(b.integer("hop")),
		Active: b.integer("active count"),
	}
	return m, b.end("ANNOUNCE_OK")
}

// Status bytes of an announcement. Restart is accepted as active, never sent.
const (
	announceEnded   = 0
	announceActive  = 1
	announceRestart = 2
)

// Announce says that the broadcast at the request's prefix plus Suffix is
// there, or no longer. Hops are oldest first, without the sender's own; at most
// MaxHops, and empty when the announcement ends.
type Announce struct {
	Active bool
	Suffix protocol.Path
	Hops   []protocol.HopID
}

// AppendAnnounce appends the message with its length. Hops are not written for
// an announcement that ends.
func AppendAnnounce(dst []byte, m Announce) []byte {
	start := len(dst)
	hops := m.Hops
	if m.Active {
		dst = append(dst, announceActive)
	} else {
		dst = append(dst, announceEnded)
		hops = nil
	}
	dst = appendString(dst, m.Suffix)
	dst = varint.Append(dst, uint64(len(hops)))
	for _, h := range hops {
		dst = varint.Append(dst, uint64(h))
	}
	return lengthen(dst, start)
}

// ParseAnnounce parses a body. Repeated hops are accepted; hops of an ending
// announcement are read and dropped.
func ParseAnnounce(msg []byte) (Announce, error) {
	b := body{rest: msg}
	status := b.octet("status")
	if status > announceRestart {
		b.fail("status", fmt.Errorf("%w: %d", ErrMalformed, status))
	}
	m := Announce{Active: status != announceEnded, Suffix: b.path("suffix")}
	count := b.integer("hop count")
	if count > MaxHops {
		b.fail("hop count", fmt.Errorf("%w: %d hops", ErrBounds, count))
		count = 0
	}
	for range count {
		h := protocol.HopID(b.integer("hop"))
		if m.Active {
			m.Hops = append(m.Hops, h)
		}
	}
	return m, b.end("ANNOUNCE")
}
