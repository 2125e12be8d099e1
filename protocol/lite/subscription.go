package lite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

// ErrUnsubscribed is returned by Next after Close.
var ErrUnsubscribed = errors.New("subscription is closed")

// SubscribeOptions say what to deliver. The zero value is the track from its
// latest group on.
type SubscribeOptions struct {
	Priority   uint8 // higher first
	MaxLatency time.Duration
	Start      wire.Optional // absent: the latest group
	End        wire.Optional // inclusive
}

func (o SubscribeOptions) delivery() wire.Delivery {
	return wire.Delivery{
		Priority:     o.Priority,
		MaxLatencyMS: uint64(max(0, o.MaxLatency.Milliseconds())),
		Start:        o.Start,
		End:          o.End,
	}
}

// Frame is one received frame. The payload is the receiver's.
type Frame struct {
	Sequence  uint64 // of its group
	Index     int    // in its group, from 0
	Timestamp int64
	Payload   []byte
}

// Subscription receives one track, newest first: a frame of an older group than
// one that was received is dropped, and a reader that falls behind skips to the
// newest group. Each frame comes once, in order, unless Update asks for a group
// again. All methods are safe for concurrent use, Next for one caller at
// a time. Close must be called.
type Subscription struct {
	session *Session
	id      uint64
	control protocol.Stream
	writing sync.Mutex // one writer of control at a time

	news chan struct{} // has room for one: Next may have something to return
	mu   sync.Mutex
	room *sync.Cond // the queue got room, or waiting for it is pointless

	queue   []Frame
	bytes   int
	begun   bool   // newest is set
	newest  uint64 // group of which a frame was received last
	next    int    // the frame of newest that was not received
	again   bool   // newest was asked for again and has not begun anew
	skipped uint64
	streams map[protocol.ReceiveStream]struct{} // of groups that are being read
	end     wire.Optional                       // END came
	fin     bool
	grace   bool // groups in flight had their time after FIN
	err     error
	closed  bool
}

// queuedBytesMax bounds the payloads that wait for Next; one frame may exceed it.
const queuedBytesMax = 1 << 20

// finGrace is how long groups may still arrive after the publisher's FIN: real
// publishers send it ahead of them.
const finGrace = time.Second

// Subscribe asks for a track. It does not wait for an answer: a refusal is the
// *protocol.StreamError of the first Next.
func (s *Session) Subscribe(
	ctx context.Context, broadcast protocol.Path, track string, o SubscribeOptions,
) (*Subscription, error) {
	stream, err := s.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %q %q: %w", broadcast, track, err)
	}
	sub := &Subscription{
		session: s, control: stream, news: make(chan struct{}, 1),
		streams: make(map[protocol.ReceiveStream]struct{}),
	}
	sub.room = sync.NewCond(&sub.mu)
	s.mu.Lock()
	sub.id = s.nextID
	s.nextID++
	s.incoming[sub.id] = sub
	s.mu.Unlock()
	head := varint.Append(nil, wire.StreamSubscribe)
	head = wire.AppendSubscribe(head, wire.Subscribe{
		ID: sub.id, Broadcast: broadcast, Track: track, Delivery: o.delivery(),
	})
	if _, err := stream.Write(head); err != nil {
		sub.Close()
		return nil, fmt.Errorf("subscribe to %q %q: %w", broadcast, track, err)
	}
	if !s.spawn(sub.readResponses) {
		sub.Close()
		return nil, fmt.Errorf("subscribe to %q %q: %w", broadcast, track,
			context.Cause(s.transport.Context()))
	}
	return sub, nil
}

// Next returns the next frame. It returns io.EOF after the track's end, a
// *protocol.StreamError after a refusal or an abort, the session's error after
// its end, the cause of ctx, or ErrUnsubscribed.
func (sub *Subscription) Next(ctx context.Context) (Frame, error) {
	for {
		f, ok, err := sub.poll()
		if ok || err != nil {
			return f, err
		}
		select {
		case <-sub.news:
		case <-ctx.Done():
			return Frame{}, context.Cause(ctx)
		}
	}
}

func (sub *Subscription) poll() (f Frame, ok bool, err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	switch {
	case sub.closed:
		return Frame{}, false, ErrUnsubscribed
	case len(sub.queue) > 0:
		f = sub.queue[0]
		sub.queue[0] = Frame{}
		sub.queue = sub.queue[1:]
		sub.bytes -= len(f.Payload)
		sub.room.Broadcast()
		return f, true, nil
	case sub.err != nil:
		return Frame{}, false, sub.err
	case sub.fin && sub.completeLocked():
		if !sub.end.Set {
			return Frame{}, false, io.ErrUnexpectedEOF
		}
		return Frame{}, false, io.EOF
	}
	return Frame{}, false, nil
}

// completeLocked says whether nothing more can come after FIN.
func (sub *Subscription) completeLocked() bool {
	if sub.grace || !sub.end.Set {
		return true
	}
	all := sub.end.Value == 0 || sub.begun && sub.newest+1 >= sub.end.Value
	return all && len(sub.streams) == 0
}

func (sub *Subscription) notify() {
	select {
	case sub.news <- struct{}{}:
	default:
	}
}

// Update changes what is delivered. A start at or below the newest group makes
// the publisher send that group again.
func (sub *Subscription) Update(o SubscribeOptions) error {
	b := wire.AppendSubscribeUpdate(nil, wire.SubscribeUpdate{Delivery: o.delivery()})
	sub.writing.Lock()
	defer sub.writing.Unlock()
	sub.mu.Lock()
	sub.again = sub.again || sub.begun && o.Start.Set && o.Start.Value <= sub.newest
	sub.mu.Unlock()
	if _, err := sub.control.Write(b); err != nil {
		return fmt.Errorf("update subscription: %w", err)
	}
	return nil
}

// Skipped returns how many groups came and were not, or not wholly, returned by
// Next, because newer ones overtook them.
func (sub *Subscription) Skipped() uint64 {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.skipped
}

// Close unsubscribes. A second call does nothing.
func (sub *Subscription) Close() {
	s := sub.session
	s.mu.Lock()
	delete(s.incoming, sub.id)
	s.mu.Unlock()
	sub.mu.Lock()
	again := sub.closed
	sub.closed = true
	streams := sub.streams
	sub.streams = nil
	sub.queue = nil
	sub.room.Broadcast()
	sub.mu.Unlock()
	if again {
		return
	}
	sub.notify()
	// Some publishers take neither FIN nor STOP_SENDING alone for the end.
	sub.finish()
	sub.control.Stop(protocol.CodeCancel)
	for stream := range streams {
		stream.Stop(protocol.CodeCancel)
	}
}

func (sub *Subscription) finish() {
	if !sub.writing.TryLock() {
		// An Update waits for a peer that does not read; it ends by this.
		sub.control.Reset(protocol.CodeCancel)
		return
	}
	defer sub.writing.Unlock()
	_ = sub.control.Close() // fails only if the stream is gone already
}

// readResponses reads the publisher's half of the Subscribe stream to its end.
func (sub *Subscription) readResponses() {
	q := sub.session.newRequest(sub.control)
	for {
		kind, err := varint.Read(q.r)
		if err == nil {
			err = noEOF(q.next())
		}
		if err == nil {
			err = sub.response(wire.ResponseType(kind), q.msg)
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			sub.mu.Lock()
			sub.fin = true
			sub.mu.Unlock()
			sub.notify()
			sub.finish()
			time.AfterFunc(finGrace, sub.endGrace)
			return
		}
		sub.fail(err)
		sub.control.Reset(codeOf(err))
		sub.control.Stop(codeOf(err))
		return
	}
}

// fail ends the subscription with err, unless it has failed before.
func (sub *Subscription) fail(err error) {
	sub.mu.Lock()
	if sub.err == nil {
		sub.err = err
	}
	sub.room.Broadcast()
	sub.mu.Unlock()
	sub.notify()
}

func (sub *Subscription) endGrace() {
	sub.mu.Lock()
	sub.grace = true
	sub.mu.Unlock()
	sub.notify()
}

// response handles one message. START and DROP tell nothing that a reader who
// takes the newest must know.
func (sub *Subscription) response(kind wire.ResponseType, msg []byte) error {
	var err error
	switch kind {
	case wire.ResponseStart:
		_, err = wire.ParseSubscribeStart(msg)
	case wire.ResponseEnd:
		var m wire.SubscribeEnd
		m, err = wire.ParseSubscribeEnd(msg)
		sub.mu.Lock()
		sub.end = wire.Some(m.Group)
		sub.mu.Unlock()
	case wire.ResponseDrop:
		_, err = wire.ParseSubscribeDrop(msg)
	default:
		err = fmt.Errorf("%w: response of type %d", wire.ErrViolation, kind)
	}
	return err
}

// receiveGroup reads one Group stream to its end.
func (s *Session) receiveGroup(stream protocol.ReceiveStream, r *bufio.Reader) {
	msg, err := s.readMessage(r, nil)
	if err != nil {
		stream.Stop(codeOf(noEOF(err)))
		return
	}
	m, err := wire.ParseGroup(msg)
	if err != nil {
		stream.Stop(codeOf(err))
		return
	}
	_ = stream.SetReadDeadline(time.Time{})
	s.mu.Lock()
	sub := s.incoming[m.SubscribeID]
	s.mu.Unlock()
	if sub == nil || !sub.enter(stream) {
		// It may have been on its way when we left.
		stream.Stop(protocol.CodeCancel)
		return
	}
	defer sub.leave(stream)
	var timestamp int64
	for index := 0; ; index++ {
		delta, payload, err := wire.ReadFrame(r, s.config.Limits.FrameBytes)
		if errors.Is(err, io.EOF) {
			return
		}
		if errors.Is(err, wire.ErrBounds) {
			stream.Stop(protocol.CodeFrameTooLarge)
			return
		}
		if err != nil {
			stream.Stop(codeOf(err))
			return
		}
		timestamp += delta
		if !sub.deliver(Frame{m.Sequence, index, timestamp, payload}) {
			stream.Stop(protocol.CodeOld)
			return
		}
	}
}

func (sub *Subscription) enter(stream protocol.ReceiveStream) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.closed {
		return false
	}
	sub.streams[stream] = struct{}{}
	return true
}

func (sub *Subscription) leave(stream protocol.ReceiveStream) {
	sub.mu.Lock()
	delete(sub.streams, stream)
	sub.mu.Unlock()
	sub.notify() // perhaps it was the last one before the end
}

// deliver queues f for Next; it waits while the queue is full of f's own group.
// It returns false if nobody wants the rest of f's group.
//
// A publisher may send a group on several streams, each from the first frame on:
// it finishes one early to make room and needs another when the group grows.
// They are read at the same time, so the shorter one may come last; what one of
// them has brought is dropped from the others.
func (sub *Subscription) deliver(f Frame) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for {
		if sub.closed || sub.err != nil {
			return false
		}
		if sub.begun && f.Sequence < sub.newest {
			sub.skipped++
			return false
		}
		if !sub.begun || f.Sequence > sub.newest {
			sub.begun, sub.newest, sub.next, sub.again = true, f.Sequence, 0, false
			sub.room.Broadcast() // readers of older groups give up
		}
		if sub.again && f.Index == 0 {
			sub.next, sub.again = 0, false
		}
		if f.Index != sub.next {
			return true // it came, or comes where the group was begun anew
		}
		full := len(sub.queue) >= sub.session.config.Limits.QueuedFrames ||
			sub.bytes+len(f.Payload) > queuedBytesMax
		if len(sub.queue) == 0 || !full {
			sub.queue = append(sub.queue, f)
			sub.bytes += len(f.Payload)
			sub.next++
			sub.notify()
			return true
		}
		if !sub.skipLocked(f.Sequence) {
			sub.room.Wait()
		}
	}
}

// skipLocked drops the queued frames of groups below sequence; it returns false
// if there are none.
func (sub *Subscription) skipLocked(sequence uint64) bool {
	n, last := 0, sequence
	for n < len(sub.queue) && sub.queue[n].Sequence < sequence {
		if sub.queue[n].Sequence != last {
			last = sub.queue[n].Sequence
			sub.skipped++
		}
		sub.bytes -= len(sub.queue[n].Payload)
		n++
	}
	sub.queue = append(sub.queue[:0], sub.queue[n:]...)
	return n > 0
}
