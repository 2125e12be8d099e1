package lite

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/wire"
)

// publication is one subscription of the peer that we serve: a cursor in the
// track, the Subscribe stream, and at most one open Group stream. Its request's
// goroutine reads the peer's half; all sending is the sender's.
type publication struct {
	id      uint64
	control protocol.Stream

	// Guarded by sender.mu; the cursor is set once, before the first turn.
	cursor   *moq.Cursor
	queued   bool // in sender.ready
	next     *publication
	class    class
	gone     bool // the peer has left, or the request failed
	finDue   bool // the time between END and FIN is over
	written  bool // the writer is done
	writeErr error

	// The sender goroutine's.
	state    state
	list     list // the list that the publication is in, for the lists below
	before   *publication
	after    *publication
	urgency  uint8
	stream   protocol.SendStream // of the newest group; nil: none open
	unwanted bool                // the peer stopped the stream of this group
	started  bool                // START went out
	ended    bool                // END went out
	shared   bool                // the writer holds the cursor's shared bytes
	timer    *time.Timer         // to FIN
}

// state is what the sender does with a publication.
type state uint8

const (
	live    state = iota
	writing       // a writer has one of its streams
	ending        // END went out, FIN is due later
	over          // both streams are finished or reset
)

// class is the coarse priority of a subscription.
type class uint8

const (
	classHigh class = iota
	classRaised
	classNormal
	classes
)

// Urgencies of streams, 0 is first. Bindings begin streams with urgencyNormal,
// so that the common case costs no call.
const (
	urgencyControl uint8 = 0
	urgencyNormal  uint8 = 3
)

func classOf(priority uint8) class {
	switch {
	case priority >= 128:
		return classHigh
	case priority > 0:
		return classRaised
	}
	return classNormal
}

func (c class) urgency() uint8 { return urgencyNormal - uint8(classNormal-c) }

// serveSubscribe runs one subscription from SUBSCRIBE to its end. It returns an
// error only for what was refused; the ends of a running one are the sender's.
func (s *Session) serveSubscribe(q *request) error {
	m, err := wire.ParseSubscribe(q.msg)
	if err != nil {
		return err
	}
	if s.config.Origin == nil {
		return errNoOrigin
	}
	q.done()
	p := &publication{id: m.ID, control: q.stream, class: classOf(m.Priority)}
	if err := s.admit(p); err != nil {
		return err
	}
	defer s.dismiss(p)
	track, release, err := s.config.Origin.Subscribe(s.transport.Context(), m.Broadcast, m.Track)
	if err != nil {
		return fmt.Errorf("subscribe to %q %q: %w", m.Broadcast, m.Track, err)
	}
	defer release()
	s.counters.SubscriptionsTotal.Add(1)
	s.counters.SubscriptionsOpen.Add(1)
	defer s.counters.SubscriptionsOpen.Add(-1)
	cursor := track.NewCursor(func() { s.sender.enqueue(p) })
	defer cursor.Close()
	limit(cursor, m.Delivery)
	s.sender.add(p, cursor)
	err = s.readUpdates(p, q, track)
	s.sender.leave(p, err)
	return nil
}

// admit keeps the publication's place in the session; dismiss gives it up.
func (s *Session) admit(p *publication) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.publications[p.id]; taken {
		return &protocol.StreamError{Code: protocol.CodeDuplicate, Reason: "subscribe id in use"}
	}
	if len(s.publications) >= s.config.Limits.Subscriptions {
		return &protocol.StreamError{Code: protocol.CodeBusy, Reason: "too many subscriptions"}
	}
	s.publications[p.id] = p
	return nil
}

func (s *Session) dismiss(p *publication) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.publications, p.id)
}

// limit bounds the groups that are sent. A start above the newest group waits;
// one below it gets the newest, since no older group is kept.
func limit(c *moq.Cursor, d wire.Delivery) {
	low, high := uint64(0), ^uint64(0)
	if d.Start.Set {
		low = d.Start.Value
	}
	if d.End.Set {
		high = d.End.Value
	}
	c.SetRange(low, high)
}

// groupCost is for how many requests sending the newest group counts.
func groupCost(track *moq.Track) int { return 1 + min(track.NewestBytes(), costBytesMax)/costBytes }

const (
	costBytes    = 16 << 10
	costBytesMax = 4 << 20
)

// readUpdates reads SUBSCRIBE_UPDATEs until the peer's half ends; the error is
// nil for a FIN.
func (s *Session) readUpdates(p *publication, q *request, track *moq.Track) error {
	for {
		if _, err := q.r.Peek(1); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		// An update that begins must end: nobody may hold half a message.
		s.expect(q)
		if err := q.next(); err != nil {
			return noEOF(err)
		}
		if err := q.stream.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		m, err := wire.ParseSubscribeUpdate(q.msg)
		if err != nil {
			return err
		}
		// A start at or below the newest group asks for it again: readers whose
		// cache has dropped it cannot get it otherwise.
		cost, again := 1, false
		if newest, ok := track.Newest(); ok && m.Start.Set && m.Start.Value <= newest {
			cost, again = groupCost(track), true
		}
		if err := s.pace.wait(s.transport.Context(), cost); err != nil {
			return err
		}
		limit(p.cursor, m.Delivery)
		if again {
			p.cursor.Rewind()
		}
		s.sender.update(p, classOf(m.Priority))
	}
}
