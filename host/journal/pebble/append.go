package pebble

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/heddle-live/heddle/host/journal"
)

// bufferBytesMax is what a graph keeps of its buffers between batches, so that
// one large load does not hold its memory for ever.
const bufferBytesMax = 1 << 20

// Append writes records with one synced batch. See journal.Journal.
func (j *Journal) Append(
	ctx context.Context, name string, records []*journal.Record,
) (journal.Position, error) {
	p, err := j.append(ctx, name, records)
	if err != nil {
		return journal.Position{}, fmt.Errorf("append to graph %q: %w", name, err)
	}
	return p, nil
}

func (j *Journal) append(
	ctx context.Context, name string, records []*journal.Record,
) (journal.Position, error) {
	g, err := j.graph(name)
	if err != nil {
		return journal.Position{}, err
	}
	defer j.calls.Done()
	if err := g.takeTurn(ctx); err != nil {
		return journal.Position{}, err
	}
	defer func() { <-g.turn }()
	if !g.open {
		return journal.Position{}, journal.ErrNotOpen
	}
	if len(records) == 0 {
		return g.head.Position, nil
	}
	if err := j.mayWrite(); err != nil {
		return journal.Position{}, err
	}
	effective, err := checkRecords(g.head.Revision, records)
	if err != nil {
		return journal.Position{}, err
	}
	if err := ctx.Err(); err != nil {
		return journal.Position{}, err
	}
	h, err := j.write(g, records, effective)
	if err != nil {
		return journal.Position{}, err
	}
	g.setHead(h)
	return h.Position, nil
}

// checkRecords returns whether no record needs a look at what is stored, or an
// error if one cannot be written.
func checkRecords(revision uint64, records []*journal.Record) (effective bool, err error) {
	effective = true
	for _, r := range records {
		if revision++; r.Revision != revision {
			return false, fmt.Errorf("%w: revision %d, expected %d",
				journal.ErrSequence, r.Revision, revision)
		}
		if err := r.Check(); err != nil {
			return false, fmt.Errorf("record %d: %w", revision, err)
		}
		effective = effective && (r.Effective || len(r.Mutations) == 0) && len(r.Drops) == 0
	}
	return effective, nil
}

// write puts records into one batch, commits it and returns the new head. The
// caller holds the graph's turn.
func (j *Journal) write(g *graph, records []*journal.Record, effective bool) (head, error) {
	b := g.batch
	switch {
	case !effective || checkPromises:
		// Reads of this batch must see what its earlier records wrote.
		b = j.db.NewIndexedBatch()
		defer b.Close()
	case b == nil:
		b = j.db.NewBatch()
		g.batch = b
	default:
		b.Reset()
	}
	h := g.head
	for _, r := range records {
		if err := j.put(g, b, &h, r); err != nil {
			return head{}, err
		}
	}
	g.value = appendHead(g.value[:0], &h)
	if err := b.Set(g.headKey, g.value, nil); err != nil {
		return head{}, err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return head{}, err
	}
	if cap(g.value) > bufferBytesMax {
		g.value = nil
	}
	if cap(g.key) > bufferBytesMax {
		g.key = nil
	}
	return h, nil
}

// put adds one record and all that follows from it to the batch, and moves h.
func (j *Journal) put(g *graph, b *pebble.Batch, h *head, r *journal.Record) error {
	written := *r // the caller's record stays as it is
	written.Epoch = h.Epoch
	g.value = journal.AppendRecord(g.value[:0], &h.Hash, &written)
	h.Hash = sha256.Sum256(g.value)
	h.Revision = r.Revision
	g.key = binary.BigEndian.AppendUint64(append(g.key[:0], g.records...), r.Revision)
	if err := b.Set(g.key, g.value, nil); err != nil {
		return err
	}
	for _, relation := range r.Drops {
		if err := j.dropRelation(g, b, h, relation); err != nil {
			return err
		}
	}
	if err := j.mutate(g, b, h, r); err != nil {
		return err
	}
	if r.Program != nil {
		if h.programRevision > 0 {
			if err := b.Delete(g.programKey(h.programRevision), nil); err != nil {
				return err
			}
		}
		h.programRevision = r.Revision
		if err := b.Set(g.programKey(r.Revision), appendProgram(nil, r.Program), nil); err != nil {
			return err
		}
	}
	if r.IdempotencyKey != "" {
		g.key = appendReceiptKey(g.key[:0], g.prefix, r.Caller, r.IdempotencyKey)
		g.value = appendReceipt(g.value[:0], r)
		return b.Set(g.key, g.value, nil)
	}
	return nil
}

// mutate adds the changes of facts to the batch, those only that change the state.
func (j *Journal) mutate(g *graph, b *pebble.Batch, h *head, r *journal.Record) error {
	for i := range r.Mutations {
		m := &r.Mutations[i]
		g.key = appendFact(append(g.key[:0], g.facts...), m.Relation, m.Tuple)
		if !r.Effective || checkPromises {
			present, err := has(b, g.key)
			if err != nil {
				return j.readError(g.name, "a fact", err)
			}
			if present != m.Delete {
				if r.Effective {
					panic("pebble: record promises to be effective and is not")
				}
				continue
			}
		}
		fact := g.key[len(g.facts):]
		if m.Delete {
			h.facts.Remove(fact)
			if err := b.Delete(g.key, nil); err != nil {
				return err
			}
			continue
		}
		h.facts.Add(fact)
		if err := b.Set(g.key, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether a key is present in an indexed batch over the store.
func has(b *pebble.Batch, key []byte) (bool, error) {
	_, closer, err := b.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

// dropRelation adds the deletion of a relation's facts to an indexed batch.
func (j *Journal) dropRelation(g *graph, b *pebble.Batch, h *head, relation uint32) error {
	lower := appendFact(append(g.key[:0], g.facts...), relation, nil)
	g.key = lower
	upper := relationEnd(g, relation)
	it, err := b.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return j.readError(g.name, "the facts", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		h.facts.Remove(it.Key()[len(g.facts):])
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return j.readError(g.name, "the facts", err)
	}
	return b.DeleteRange(lower, upper, nil)
}

// relationEnd returns the first key behind a relation's facts.
func relationEnd(g *graph, relation uint32) []byte {
	if relation+1 == 0 {
		return sectionEnd(g.facts)
	}
	return appendFact(append([]byte(nil), g.facts...), relation+1, nil)
}
