package lite

import (
	"time"

	"github.com/heddle-live/heddle/protocol"
)

// openStream returns a stream at once, or ErrStreamLimit. Whoever waited longer
// goes first.
func (s *sender) openStream() (protocol.SendStream, error) {
	if stream := s.spare.get(); stream != nil {
		return stream, nil
	}
	if s.rings[parked].length > 0 {
		return nil, protocol.ErrStreamLimit
	}
	return s.session.transport.TryOpenUniStream()
}

// park lets p wait for stream credit.
func (s *sender) park(p *publication) {
	s.untouch(p, parked)
	s.session.counters.StreamCreditWaits.Add(1)
	s.awaitCredit()
	s.expectCredit()
}

// creditPatience is how long publications wait for stream credit before others'
// open groups are finished for it.
const creditPatience = 100 * time.Millisecond

// awaitCredit makes sure that one goroutine waits for a stream.
func (s *sender) awaitCredit() {
	s.mu.Lock()
	running := s.opening
	s.opening = true
	s.mu.Unlock()
	if running {
		return
	}
	s.session.spawn(func() {
		stream, err := s.session.transport.OpenUniStream(s.session.transport.Context())
		s.mu.Lock()
		s.opening = false
		if err == nil {
			s.arrived.put(stream)
		}
		s.unlockAndWake()
	})
}

// expectCredit has checkCredit called after a while, unless it will be or there
// is nothing for it to do: a peer that grants nothing and holds nothing costs no
// timer.
func (s *sender) expectCredit() {
	if s.expecting || s.rings[parked].length == 0 || s.rings[opened].length == 0 {
		return
	}
	s.expecting, s.served = true, false
	time.AfterFunc(creditPatience, func() {
		s.mu.Lock()
		s.overdue = true
		s.unlockAndWake()
	})
}

// checkCredit finishes open groups if no credit came for a while, the least
// recently changed first, one for each publication that waits. A peer that
// grants fewer streams than OpenGroups would otherwise never see the rest.
func (s *sender) checkCredit() {
	s.expecting = false
	for range s.rings[parked].length {
		p := s.rings[opened].head
		if s.served || p == nil {
			break
		}
		s.close(p)
	}
	s.expectCredit()
}

// unpark serves those that wait for credit, the longest wait first, while there
// is any.
func (s *sender) unpark() {
	for p := s.rings[parked].head; p != nil; p = s.rings[parked].head {
		if len(s.spare) == 0 {
			stream, err := s.session.transport.TryOpenUniStream()
			if err != nil {
				s.awaitCredit()
				return
			}
			s.spare.put(stream)
		}
		s.served = true
		s.move(p, nowhere)
		for s.advance(p) {
		}
	}
}
