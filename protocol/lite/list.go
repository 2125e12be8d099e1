package lite

import "github.com/heddle-live/heddle/protocol"

// queue is a first-in first-out list of publications with news. A publication
// is in at most one queue, once; sender.mu guards it.
type queue struct {
	head, tail *publication
}

func (q *queue) push(p *publication) {
	p.next = nil
	if q.tail == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail = p
}

func (q *queue) pop() *publication {
	p := q.head
	if p == nil {
		return nil
	}
	q.head = p.next
	if q.head == nil {
		q.tail = nil
	}
	p.next = nil
	return p
}

// list names the one of the sender's lists that a publication is in.
type list uint8

const (
	nowhere list = iota
	opened       // its newest group's stream is open and has nothing to send
	parked       // waits for stream credit
	stalled      // waits for a writer to be free
	lists
)

// ring is a list of publications from which any can leave at once; only the
// sender goroutine uses it.
type ring struct {
	head, tail *publication
	length     int
}

// move takes p out of the list it is in and puts it at the end of another.
func (s *sender) move(p *publication, to list) {
	if p.list != nowhere {
		from := &s.rings[p.list]
		if p.before == nil {
			from.head = p.after
		} else {
			p.before.after = p.after
		}
		if p.after == nil {
			from.tail = p.before
		} else {
			p.after.before = p.before
		}
		from.length--
	}
	p.list, p.before, p.after = to, nil, nil
	if to == nowhere {
		return
	}
	r := &s.rings[to]
	p.before = r.tail
	if r.tail == nil {
		r.head = p
	} else {
		r.tail.after = p
	}
	r.tail = p
	r.length++
}

// pool holds streams that were opened and not used: the peer has heard of none,
// and each is worth one stream credit.
type pool []protocol.SendStream

func (s *pool) get() protocol.SendStream {
	if len(*s) == 0 {
		return nil
	}
	last := len(*s) - 1
	stream := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return stream
}

func (s *pool) put(stream protocol.SendStream) { *s = append(*s, stream) }
