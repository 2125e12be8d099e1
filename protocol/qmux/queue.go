package qmux

import (
	"context"

	"github.com/coder/websocket"
)

// queueBytesKept is how much memory a quiet session's queue may hold on to.
const queueBytesKept = 32 << 10

// queue holds outgoing frames back to back, so that those which meet in it
// share records.
type queue struct {
	bytes []byte
	ends  []int // where each frame ends
	// generation tells apart what was queued before and after the writer took
	// the queue, or it was cleared.
	generation uint64
}

// endFrame marks the end of the frame just appended to bytes.
func (q *queue) endFrame() { q.ends = append(q.ends, len(q.bytes)) }

// clear empties q and keeps its memory, unless a burst made it large.
func (q *queue) clear() {
	q.bytes = q.bytes[:0]
	if cap(q.bytes) > queueBytesKept {
		q.bytes = nil
	}
	q.ends = q.ends[:0]
}

// send writes the frames in as few records as they fit and returns the bytes
// written.
func (q *queue) send(ctx context.Context, conn *websocket.Conn) (int, error) {
	start, end := 0, 0
	for _, frameEnd := range q.ends {
		if frameEnd-start > recordBytesMax && end > start {
			if err := conn.Write(ctx, websocket.MessageBinary, q.bytes[start:end]); err != nil {
				return start, err
			}
			start = end
		}
		end = frameEnd
	}
	if end == start {
		return start, nil
	}
	return end, conn.Write(ctx, websocket.MessageBinary, q.bytes[start:end])
}

// queueControlLocked queues an answer or a grant. It may go over queueBytesMax:
// these frames are small and bounded by the peer's own; controlBytesMax ends a
// session that piles them up.
func (s *session) queueControlLocked(kind uint64, values ...uint64) {
	if s.err != nil {
		return
	}
	s.queue.bytes = appendFrame(s.queue.bytes, kind, values...)
	s.queue.endFrame()
	s.signal()
}

// roomLocked is how many bytes of frames may still be queued.
func (s *session) roomLocked() int { return queueBytesMax - len(s.queue.bytes) }

// appendCreditLocked queues the grants that are due.
func (s *session) appendCreditLocked() {
	if s.dataCredit {
		s.dataCredit = false
		s.queueControlLocked(frameMaxData, s.receivedDataMax)
	}
	for dir := range s.incoming {
		if in := &s.incoming[dir]; in.tell {
			in.tell = false
			s.queueControlLocked(frameMaxStreamsBidi+uint64(dir), in.granted)
		}
	}
	for i, st := range s.credit {
		st.creditDue = false
		if !st.receivedAll {
			s.queueControlLocked(frameMaxStreamData, st.id, st.receiveMax)
		}
		s.credit[i] = nil
	}
	s.credit = s.credit[:0]
}

// wakeBlockedLocked lets the writers that wait for room or credit look again.
func (s *session) wakeBlockedLocked() {
	for st := range s.blocked {
		st.writable.Broadcast()
	}
	clear(s.blocked)
}

// consumedLocked returns n bytes of the session's window.
func (s *session) consumedLocked(n int) {
	s.consumedData += uint64(n)
	if s.receivedDataMax-s.consumedData <= s.ours.data/2 {
		s.receivedDataMax = s.consumedData + s.ours.data
		s.dataCredit = true
		s.signal()
	}
}
