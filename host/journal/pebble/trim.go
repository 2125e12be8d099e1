package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// trimRecordsMax is how many records one batch of Trim forgets, so that an
// Append never waits for a long one.
const trimRecordsMax = 4096

// Trim forgets old records and receipts. See journal.Journal.
func (j *Journal) Trim(ctx context.Context, name string, before uint64) error {
	g, err := j.graph(name)
	if err != nil {
		return fmt.Errorf("trim graph %q: %w", name, err)
	}
	defer j.calls.Done()
	trimmed := false
	for more := true; more; {
		if more, err = j.trimSome(ctx, g, before); err != nil {
			return fmt.Errorf("trim graph %q: %w", name, err)
		}
		trimmed = trimmed || more
	}
	if !trimmed {
		return nil
	}
	return j.writeWitness("")
}

// trimSome forgets up to trimRecordsMax records and reports whether it did. It
// does not ask for free space, for it is what makes some.
func (j *Journal) trimSome(ctx context.Context, g *graph, before uint64) (bool, error) {
	if err := g.takeTurn(ctx); err != nil {
		return false, err
	}
	defer func() { <-g.turn }()
	if err := j.failure(); err != nil {
		return false, err
	}
	h := g.head
	before = min(before, h.Revision, h.first+trimRecordsMax)
	if before <= h.first {
		return false, nil
	}
	b := j.db.NewBatch()
	defer b.Close()
	if err := j.trimReceipts(g, b, h.first, before); err != nil {
		return false, err
	}
	if err := b.DeleteRange(g.recordKey(h.first), g.recordKey(before), nil); err != nil {
		return false, err
	}
	h.first = before
	if err := b.Set(g.headKey, appendHead(nil, &h), nil); err != nil {
		return false, err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return false, err
	}
	g.setHead(h)
	return true, nil
}

// trimReceipts deletes the receipts that the records of [from, to) left, unless
// a later record left another one under the same key.
func (j *Journal) trimReceipts(g *graph, b *pebble.Batch, from, to uint64) (err error) {
	it, err := j.db.NewIter(&pebble.IterOptions{
		LowerBound: g.recordKey(from), UpperBound: g.recordKey(to),
	})
	if err != nil {
		return j.readError(g.name, "the records", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var r storedRecord
	for ok := it.First(); ok; ok = it.Next() {
		if err := j.readRecordInto(&r, g, it); err != nil {
			return err
		}
		if r.IdempotencyKey == "" {
			continue
		}
		key := appendReceiptKey(nil, g.prefix, r.Caller, r.IdempotencyKey)
		receipt, err := j.readReceipt(g, key)
		if err != nil {
			return err
		}
		if receipt == nil || receipt.Revision >= to {
			continue
		}
		if err := b.Delete(key, nil); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return j.readError(g.name, "the records", err)
	}
	return nil
}
