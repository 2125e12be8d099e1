package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/sdk/frame"
)

// killWriter writes numbered transactions, one after the other, and goes on with
// the next only when it knows the receipt of the one before. So what it wrote
// follows from one number. It also watches its own key.
type killWriter struct {
	id    int
	acked []uint64     // revisions of transactions 1, 2 …
	sent  atomic.Int64 // number of the newest transaction that was ever sent

	// The rest belongs to the goroutine that watches, and between rounds to the test.
	watched  sync.WaitGroup
	sequence uint64 // highest seen in any round
	revision uint64 // newest seen
	number   int64  // newest transaction seen
	seen     []killSeen
}

// killSeen is a published change.
type killSeen struct {
	number   int64
	revision uint64
}

func (w *killWriter) parts(number int) int { return 2 + (w.id*3+number*7)%5 }

// forgotten reports whether transaction number deletes the rows of an earlier one.
func (w *killWriter) forgotten(number int) (earlier int, ok bool) {
	return number - 5, number%10 == 0
}

// call is the transaction with a number: some new rows, a cursor that moves,
// and now and then the rows of an earlier transaction deleted.
func (w *killWriter) call(number int) call {
	var insert, remove strings.Builder
	items := func(b *strings.Builder, number int) {
		for part := range w.parts(number) {
			if part > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, "[%d,%d,%d,%d]", w.id, number, part, w.parts(number))
		}
	}
	items(&insert, number)
	if earlier, ok := w.forgotten(number); ok {
		items(&remove, earlier)
	}
	const body = `{"insert":{"item":[%s],"cursor":[[%d,%d]]},` +
		`"delete":{"item":[%s],"cursor":[[%[2]d,%[5]d]]}}`
	return call{
		method: "POST", path: "/v1/graphs/g/transactions", media: "application/json",
		key:  fmt.Sprintf("writer %d, %d", w.id, number),
		body: fmt.Sprintf(body, insert.String(), w.id, number, remove.String(), number-1),
	}
}

// run writes until the server is killed.
func (w *killWriter) run(t *testing.T, work *killWork, rng *rand.Rand) {
	for !work.killing.Load() {
		number := len(w.acked) + 1
		w.sent.Store(int64(number))
		r, err := w.write(t.Context(), work, w.call(number), rng)
		if err != nil {
			t.Errorf("writer %d, transaction %d: %v", w.id, number, err)
			return
		}
		if r.Revision == 0 {
			continue // once more, under the same key
		}
		w.acknowledge(t, r)
		work.ack()
	}
}

// write sends a transaction, now and then twice at once or without the patience
// to wait for the answer.
func (w *killWriter) write(ctx context.Context, work *killWork, c call, rng *rand.Rand) (
	receipt, error,
) {
	switch rng.IntN(8) {
	case 0:
		patience := time.Duration(rng.Int64N(int64(4 * time.Millisecond)))
		hurried, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return work.write(hurried, c)
	case 1:
		var other receipt
		var otherErr error
		var twin sync.WaitGroup
		twin.Go(func() { other, otherErr = work.write(ctx, c) })
		r, err := work.write(ctx, c)
		twin.Wait()
		switch {
		case err != nil || otherErr != nil:
			return receipt{}, fmt.Errorf("sent twice: %v, %v", err, otherErr)
		case r.Revision == 0:
			return other, nil
		case other.Revision != 0 && other.Revision != r.Revision:
			return receipt{}, fmt.Errorf("sent twice: %+v and %+v", r, other)
		}
		return r, nil
	}
	return work.write(ctx, c)
}

// acknowledge notes the receipt of the next transaction.
func (w *killWriter) acknowledge(t *testing.T, r receipt) {
	number := len(w.acked) + 1
	inserted, deleted := w.parts(number)+1, min(number-1, 1)
	if earlier, ok := w.forgotten(number); ok {
		deleted += w.parts(earlier)
	}
	if r.Inserted != inserted || r.Deleted != deleted {
		t.Errorf("writer %d, transaction %d: %+v, want %d inserted and %d deleted",
			w.id, number, r, inserted, deleted)
	}
	if number > 1 && r.Revision <= w.acked[number-2] {
		t.Errorf("writer %d, transaction %d: revision %d after %d",
			w.id, number, r.Revision, w.acked[number-2])
	}
	w.acked = append(w.acked, r.Revision)
}

// check looks at the writer's rows, which the number of its newest transaction
// tells. It returns that number and how many rows there are.
func (w *killWriter) check(p *process) (number, facts int) {
	p.t.Helper()
	newest := p.query("?cursor($w, N)", map[string]any{"w": w.id})
	switch len(newest) {
	case 0:
	case 1:
		number = int(newest[0][1].(float64))
	default:
		p.t.Errorf("writer %d has %d cursors: %v", w.id, len(newest), newest)
		return 0, 0
	}
	if number < len(w.acked) || number > int(w.sent.Load()) || number < int(w.number) {
		p.t.Errorf("writer %d is at transaction %d: %d are acknowledged, %d sent, %d seen",
			w.id, number, len(w.acked), w.sent.Load(), w.number)
	}
	rows := p.query("?item($w, N, P, K)", map[string]any{"w": w.id})
	want := w.items(number)
	for i := range max(len(rows), len(want)) {
		switch {
		case i >= len(rows):
			p.t.Errorf("writer %d at transaction %d: %v is not there", w.id, number, want[i])
		case i >= len(want) || fmt.Sprint(rows[i]) != fmt.Sprint(want[i]):
			p.t.Errorf("writer %d at transaction %d: row %d of %d is %v",
				w.id, number, i, len(want), rows[i])
		default:
			continue
		}
		break
	}
	return number, len(rows) + len(newest)
}

// items are the writer's rows after a transaction, sorted.
func (w *killWriter) items(newest int) (rows [][]int) {
	for number := 1; number <= newest; number++ {
		if number%10 == 5 && number+5 <= newest {
			continue // deleted
		}
		for part := range w.parts(number) {
			rows = append(rows, []int{w.id, number, part, w.parts(number)})
		}
	}
	return rows
}

// watch reads the writer's key until the session ends.
func (w *killWriter) watch(t *testing.T, client *lite.Session) {
	t.Helper()
	broadcast := protocol.Path("g/last").Join(protocol.Path(fmt.Sprint(w.id)))
	sub, err := client.Subscribe(t.Context(), broadcast, frame.TrackRows, lite.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.seen = w.seen[:0]
	w.watched.Go(func() {
		defer sub.Close()
		if err := w.follow(t.Context(), sub); err != nil {
			t.Errorf("viewer of %d: %v", w.id, err)
		}
	})
}

// follow returns nil when the session has ended.
func (w *killWriter) follow(ctx context.Context, sub *lite.Subscription) error {
	var state frame.State
	for {
		f, err := sub.Next(ctx)
		if err != nil {
			if _, refused := err.(*protocol.StreamError); refused {
				return err
			}
			return nil
		}
		parsed, err := frame.ParseFrame(f.Payload, nil)
		if err != nil {
			return err
		}
		if f.Sequence <= w.sequence {
			return fmt.Errorf("group %d after %d", f.Sequence, w.sequence)
		}
		w.sequence = f.Sequence
		if c := state.Apply(f.Sequence, uint64(f.Index), parsed); c.Outcome != frame.Applied {
			return fmt.Errorf("frame of revision %d: %v", parsed.Revision, c.Outcome)
		}
		if err := w.see(parsed, state.Rows()); err != nil {
			return err
		}
	}
}

// see notes what a frame says of the newest transaction.
func (w *killWriter) see(f *frame.Frame, rows []frame.Row) error {
	number := int64(0)
	if len(rows) > 0 {
		number = rows[0][1].(int64)
	}
	switch {
	case len(rows) > 1 || number > 0 && rows[0][0] != int64(w.id):
		return fmt.Errorf("rows %v at revision %d", rows, f.Revision)
	case number < w.number || number > w.sent.Load() || f.Revision < w.revision:
		return fmt.Errorf("transaction %d at revision %d, after %d at %d; %d sent",
			number, f.Revision, w.number, w.revision, w.sent.Load())
	}
	w.number, w.revision = number, f.Revision
	if f.HasBase {
		w.seen = append(w.seen, killSeen{number: number, revision: f.Revision})
	}
	return nil
}

// compareSeen expects that viewers saw each transaction at its revision, also
// if its writer heard of it only after the kill.
func (w *killWriter) compareSeen(t *testing.T) {
	t.Helper()
	for _, s := range w.seen {
		if want := w.acked[s.number-1]; s.revision != want {
			t.Errorf("writer %d: transaction %d was seen at revision %d, and its receipt says %d",
				w.id, s.number, s.revision, want)
		}
	}
}
