package lite

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

// sender sends the groups of all subscriptions of one session from one
// goroutine that never waits for the peer:
//
//   - A publication with news is queued once; what it sends is chosen when it
//     is its turn, so that a slow peer gets the newest groups and not all.
//   - Without stream credit it is parked. One goroutine waits for credit, while
//     the sender goes on with groups whose stream is open.
//   - What flow control does not take at once goes to a writer, a goroutine that
//     may wait. When all writers are taken, the publication is stalled and
//     chooses anew when one is done.
type sender struct {
	session *Session
	wake    chan struct{} // has room for one; sent to when idle becomes false

	mu      sync.Mutex
	ready   [classes]queue
	idle    bool
	arrived pool // opened by the goroutine that waited for credit
	opening bool // that goroutine exists
	overdue bool // a while has passed since expectCredit

	// The sender goroutine's.
	buf     []byte
	spare   pool
	rings   [lists]ring
	writers int
	// For checkCredit: it will be called; a parked publication got a stream.
	expecting bool
	served    bool
}

// headBytes is the room kept in front of frames for what begins a Group stream.
const headBytes = 1 + wire.MaxGroupBytes

// keptBufferBytes is how much of a buffer a session keeps from one group to the
// next.
const keptBufferBytes = 16 << 10

func newSender(s *Session) *sender {
	return &sender{session: s, wake: make(chan struct{}, 1), buf: make([]byte, headBytes, 2048)}
}

// enqueue notes that p has news. It is called by tracks, writers and timers.
func (s *sender) enqueue(p *publication) {
	s.mu.Lock()
	s.enqueueLocked(p)
	s.unlockAndWake()
}

func (s *sender) enqueueLocked(p *publication) {
	if !p.queued && p.cursor != nil {
		p.queued = true
		s.ready[p.class].push(p)
	}
}

// unlockAndWake releases the lock and wakes the sender if it sleeps.
func (s *sender) unlockAndWake() {
	sleeps := s.idle
	s.idle = false
	s.mu.Unlock()
	if sleeps {
		s.wake <- struct{}{}
	}
}

// add takes p on with its cursor, which may have woken it already.
func (s *sender) add(p *publication, c *moq.Cursor) {
	s.mu.Lock()
	p.cursor = c
	s.enqueueLocked(p)
	s.unlockAndWake()
}

// leave notes that the peer's half of p ended: by FIN, or for the reason err.
func (s *sender) leave(p *publication, err error) {
	if err != nil {
		// Nothing can be said on this stream any more, or nothing should be.
		code := codeOf(err)
		p.control.Reset(code)
		p.control.Stop(code)
	}
	s.mu.Lock()
	p.gone = true
	s.enqueueLocked(p)
	s.unlockAndWake()
}

// update notes that p's delivery was changed.
func (s *sender) update(p *publication, c class) {
	s.mu.Lock()
	p.class = c
	s.enqueueLocked(p)
	s.unlockAndWake()
}

// run is the sender goroutine; it ends with the session.
func (s *sender) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		p := s.nextLocked()
		credit := len(s.arrived) > 0
		if credit {
			s.spare = append(s.spare, s.arrived...)
			clear(s.arrived)
			s.arrived = s.arrived[:0]
		}
		overdue := s.overdue
		s.overdue = false
		s.idle = p == nil && !credit && !overdue
		idle := s.idle
		s.mu.Unlock()
		// A stream that one publication could not use is another's chance.
		if credit || len(s.spare) > 0 && s.rings[parked].length > 0 {
			s.unpark()
		}
		if overdue {
			s.checkCredit()
		}
		if p != nil {
			s.turn(p)
		}
		if idle {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
		}
	}
	for p := s.rings[opened].head; p != nil; p = s.rings[opened].head {
		s.close(p)
	}
}

func (s *sender) nextLocked() *publication {
	for i := range s.ready {
		if p := s.ready[i].pop(); p != nil {
			p.queued = false
			return p
		}
	}
	return nil
}

// turn does whatever p has to do now.
func (s *sender) turn(p *publication) {
	s.mu.Lock()
	gone, finDue, written, writeErr := p.gone, p.finDue, p.written, p.writeErr
	p.written, p.urgency = false, p.class.urgency()
	s.mu.Unlock()
	if written {
		s.endWriter(p, writeErr)
		defer s.unstall()
	}
	switch {
	case p.state == over:
	case gone:
		s.drop(p)
	case p.state == writing || p.list == parked || p.list == stalled:
		// Neither an abort nor the track's memory waits for a peer that does not
		// read.
		if code, aborted := p.cursor.AbortCode(); aborted {
			s.interrupt(p, code)
		} else if p.state == writing && p.cursor.Evicted() {
			s.interrupt(p, protocol.CodeOld) // begins anew when the writer is back
		}
	case finDue && p.state == ending:
		s.finish(p)
	case p.state == live && p.unread():
		// STOP_SENDING alone is an end too; its reader takes it from here.
		p.control.Stop(protocol.CodeCancel)
	case p.state == live:
		for s.advance(p) {
		}
	}
}

// unread says whether the peer reads the Subscribe stream no longer.
func (p *publication) unread() bool {
	select {
	case <-p.control.Done():
		return true
	default:
		return false
	}
}

// advance sends what p has not sent, as far as it goes without waiting. It
// returns true if there may be more to do at once.
func (s *sender) advance(p *publication) (again bool) {
	buf, step := p.cursor.Take(s.buf[:headBytes])
	if cap(buf) <= keptBufferBytes {
		s.buf = buf[:headBytes]
	}
	switch step.Kind {
	case moq.NewGroup:
		return s.begin(p, buf, step) && step.More
	case moq.MoreFrames:
		return s.extend(p, buf[headBytes:], step)
	case moq.Finished:
		s.end(p, step.End)
	case moq.Aborted:
		s.abort(p, step.Code)
	case moq.Idle:
	}
	return false
}

// begin sends the first frames of a group on a stream of its own. The stream of
// the group before ends in the same go, so that both fit one packet; it is only
// reset if the peer would take it for complete though frames are missing.
func (s *sender) begin(p *publication, buf []byte, step moq.Step) bool {
	stream, err := s.openStream()
	if errors.Is(err, protocol.ErrStreamLimit) {
		p.cursor.Undo()
		s.leaveGroup(p, step.Cut)
		s.park(p)
		return false
	}
	if err != nil {
		p.cursor.Undo()
		return false // the session is ending
	}
	if !p.started && !s.start(p, step.Sequence) {
		p.cursor.Undo()
		s.spare.put(stream)
		return false
	}
	var head [headBytes]byte
	h := wire.AppendGroup(varint.Append(head[:0], wire.UniStreamGroup), wire.Group{
		SubscribeID: p.id, Sequence: step.Sequence,
	})
	at := headBytes - len(h)
	copy(buf[at:], h)
	s.leaveGroup(p, step.Cut)
	if p.urgency != urgencyNormal {
		stream.SetPriority(p.urgency)
	}
	p.stream, p.unwanted = stream, false
	return s.put(p, buf[at:], step)
}

// extend sends further frames of the group whose stream is open.
func (s *sender) extend(p *publication, frames []byte, step moq.Step) bool {
	if p.stream != nil {
		return s.put(p, frames, step) && step.More
	}
	if p.unwanted {
		p.cursor.Release()
		return step.More
	}
	// The stream was finished early, to make room: the whole group goes out
	// again, since no part of it can be read on its own.
	p.cursor.Undo()
	p.cursor.Rewind()
	return true
}

// put sends bytes and then step's shared frames on p's stream, or has a writer
// do it, or takes the step back.
func (s *sender) put(p *publication, b []byte, step moq.Step) bool {
	err := protocol.ErrWouldBlock
	if step.Shared == nil {
		err = p.stream.TryWrite(b)
	}
	switch {
	case errors.Is(err, protocol.ErrWouldBlock):
		if !s.write(p, p.stream, b, step.Shared) {
			p.cursor.Undo()
			if step.Kind == moq.NewGroup {
				if p.urgency != urgencyNormal {
					p.stream.SetPriority(urgencyNormal)
				}
				s.spare.put(p.stream)
				p.stream = nil
			}
			return false
		}
	case err != nil:
		// The peer stopped this group; the next one may be welcome.
		p.stream.Reset(protocol.CodeCancel)
		p.stream, p.unwanted = nil, true
		s.untouch(p, nowhere)
		return true
	default:
		s.touch(p)
	}
	s.count(b, step)
	return err == nil
}

func (s *sender) count(b []byte, step moq.Step) {
	c := s.session.counters
	if step.Kind == moq.NewGroup {
		c.GroupsSent.Add(1)
	}
	if step.Superseded > 0 {
		c.GroupsSuperseded.Add(step.Superseded)
	}
	c.FramesSent.Add(uint64(step.Frames))
	c.BytesSent.Add(uint64(len(b) + len(step.Shared)))
}

// touch makes p the most recently changed of the open groups, and finishes the
// least recently changed one if there are too many.
func (s *sender) touch(p *publication) {
	if p.list != opened {
		s.session.counters.GroupStreamsOpen.Add(1)
	}
	s.move(p, opened)
	if s.rings[opened].length > s.session.config.Limits.OpenGroups {
		s.close(s.rings[opened].head)
	}
	s.expectCredit()
}

// untouch takes p out of the open groups, to another list.
func (s *sender) untouch(p *publication, to list) {
	if p.list == opened {
		s.session.counters.GroupStreamsOpen.Add(-1)
	}
	s.move(p, to)
}

// close finishes p's group stream, complete or not worth keeping open.
func (s *sender) close(p *publication) {
	s.untouch(p, nowhere)
	if p.stream != nil {
		_ = p.stream.Close() // fails only if the stream is gone already
		p.stream = nil
	}
}

// leaveGroup ends the stream of the group before a new one.
func (s *sender) leaveGroup(p *publication, cut bool) {
	if p.stream != nil && cut {
		p.stream.Reset(protocol.CodeOld)
		p.stream = nil
	}
	s.close(p)
}

// unstall serves those that wait for a writer until one has to wait again.
func (s *sender) unstall() {
	for p := s.rings[stalled].head; p != nil; p = s.rings[stalled].head {
		s.move(p, nowhere)
		for s.advance(p) {
		}
		if p.list == stalled {
			return
		}
	}
}

// write hands b, which is copied, and shared to a goroutine that may wait. It
// returns false, with p stalled, if all are taken.
func (s *sender) write(p *publication, to protocol.SendStream, b, shared []byte) bool {
	s.session.counters.BlockedWrites.Add(1)
	if s.writers >= s.session.config.Limits.BlockedWriters {
		s.untouch(p, stalled)
		return false
	}
	own := bytes.Clone(b)
	s.untouch(p, nowhere)
	p.state, p.shared = writing, shared != nil
	s.writers++
	s.session.spawn(func() {
		_, err := to.Write(own)
		if err == nil && len(shared) > 0 {
			_, err = to.Write(shared)
		}
		s.mu.Lock()
		p.written, p.writeErr = true, err
		s.enqueueLocked(p)
		s.unlockAndWake()
	})
	return true
}

// endWriter takes p back from its writer.
func (s *sender) endWriter(p *publication, err error) {
	s.writers--
	p.state = live
	if p.shared {
		p.cursor.Release()
		p.shared = false
	}
	switch {
	case p.stream == nil:
	case err != nil:
		p.stream.Reset(protocol.CodeCancel)
		p.stream, p.unwanted = nil, true
	default:
		s.touch(p)
	}
}

// start announces the first group. It returns false if a writer has to do it;
// p gets another turn then.
func (s *sender) start(p *publication, sequence uint64) bool {
	return s.respond(p, func(dst []byte) []byte {
		return wire.AppendSubscribeStart(dst, wire.SubscribeStart{Group: sequence})
	}, &p.started)
}

// respond sends a message on the Subscribe stream and sets done. It returns
// false if a writer has to do it.
func (s *sender) respond(p *publication, message func([]byte) []byte, done *bool) bool {
	b := message(make([]byte, 0, 16))
	err := p.control.TryWrite(b)
	if errors.Is(err, protocol.ErrWouldBlock) {
		if s.write(p, p.control, b, nil) {
			*done = true
		}
		return false
	}
	*done = true // a dead Subscribe stream is its reader's business
	return true
}

// end says that the track has ended, at once, and plans the FIN: clients drop
// the groups that they have not read yet when the Subscribe stream ends.
func (s *sender) end(p *publication, next uint64) {
	s.close(p)
	if !p.ended && !s.respond(p, func(dst []byte) []byte {
		return wire.AppendSubscribeEnd(dst, wire.SubscribeEnd{Group: next})
	}, &p.ended) {
		return // comes again when the writer is done
	}
	p.state = ending
	rtt := s.session.transport.Stats().SmoothedRTT
	p.timer = time.AfterFunc(max(s.session.config.Limits.FinishDelay, 4*rtt), func() {
		s.mu.Lock()
		p.finDue = true
		s.enqueueLocked(p)
		s.unlockAndWake()
	})
}

// finish ends our half of the Subscribe stream, and bounds the wait for the
// peer to end its own.
func (s *sender) finish(p *publication) {
	p.state = over
	_ = p.control.Close() // fails only if the stream is gone already
	_ = p.control.SetReadDeadline(time.Now().Add(s.session.config.Limits.RequestTimeout))
}

// abort resets all of p, which also ends the wait for the peer.
func (s *sender) abort(p *publication, code protocol.StreamCode) {
	s.untouch(p, nowhere)
	p.state = over
	if p.stream != nil {
		p.stream.Reset(code)
		p.stream = nil
	}
	p.control.Reset(code)
	p.control.Stop(code)
}

// drop ends our side after the peer has ended its own.
func (s *sender) drop(p *publication) {
	if p.state == writing {
		s.interrupt(p, protocol.CodeCancel) // another turn follows
		return
	}
	s.close(p)
	_ = p.control.Close() // fails only if the stream is gone already
	if p.timer != nil {
		p.timer.Stop()
	}
	p.state = over
}

// interrupt makes p's writer return, after which p gets another turn, or aborts
// p if it has none.
func (s *sender) interrupt(p *publication, code protocol.StreamCode) {
	switch {
	case p.state != writing:
		s.abort(p, code)
	case p.stream != nil:
		p.stream.Reset(code)
	default:
		p.control.Reset(code)
	}
}
