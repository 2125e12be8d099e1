package ingest

import (
	"context"
	"testing"

	"github.com/heddle-live/heddle/host/journal"
)

// takingJournal takes every record.
type takingJournal struct{ Journal }

func (takingJournal) Append(context.Context, string, []*journal.Record) (journal.Position, error) {
	return journal.Position{}, nil
}

func TestLargeTransactionLeavesNoLargeBuffer(t *testing.T) {
	l := &Loop{cfg: Config{Journal: takingJournal{}, Nanos: func() int64 { return 0 }}}
	for _, c := range []struct {
		name             string
		tuples, capacity int // bytes
	}{
		{"ordinary", 1000, 4096},
		{"large", 1000, tuplesBytesKept + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.tuples = make([]byte, c.tuples, c.capacity)
			if !l.append(t.Context()) {
				t.Fatal(l.failure)
			}
			if len(l.tuples) != 0 || cap(l.tuples) > tuplesBytesKept {
				t.Errorf("%d bytes of %d are kept", len(l.tuples), cap(l.tuples))
			}
			if c.capacity <= tuplesBytesKept && cap(l.tuples) != c.capacity {
				t.Error("the buffer is not used again")
			}
		})
	}
}
