package pebble

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/heddle-live/heddle/host/journal"
)

// Head returns the position that the last Append or Open left.
func (j *Journal) Head(_ context.Context, name string) (journal.Position, error) {
	g, err := j.graph(name)
	if err != nil {
		return journal.Position{}, fmt.Errorf("head of graph %q: %w", name, err)
	}
	defer j.calls.Done()
	return g.currentHead().Position, nil
}

// Program returns the current program. See journal.Journal.
func (j *Journal) Program(_ context.Context, name string) ([]byte, uint64, error) {
	var program []byte
	var revision uint64
	err := j.view(name, func(g *graph, s *pebble.Snapshot, h head) (err error) {
		revision = h.programRevision
		program, err = j.readProgram(s, g, h)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("program of graph %q: %w", name, err)
	}
	return program, revision, nil
}

// State visits every base fact. See journal.Journal.
func (j *Journal) State(
	ctx context.Context, name string, visit func(journal.Mutation) error,
) ([]byte, error) {
	var program []byte
	err := j.view(name, func(g *graph, s *pebble.Snapshot, h head) (err error) {
		if program, err = j.readProgram(s, g, h); err != nil {
			return err
		}
		return j.visitFacts(ctx, s, g, h, visit)
	})
	if err != nil {
		return nil, fmt.Errorf("state of graph %q: %w", name, err)
	}
	return program, nil
}

// view calls read with a snapshot of the store and the graph's head in it.
func (j *Journal) view(name string, read func(*graph, *pebble.Snapshot, head) error) (err error) {
	g, err := j.graph(name)
	if err != nil {
		return err
	}
	defer j.calls.Done()
	s := j.db.NewSnapshot()
	defer func() { err = errors.Join(err, s.Close()) }()
	v, closer, err := s.Get(g.headKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return journal.ErrNotFound // dropped meanwhile
	}
	if err != nil {
		return j.readError(name, "the head", err)
	}
	h, err := parseHead(v)
	if err := errors.Join(err, closer.Close()); err != nil {
		return j.damage(journal.ErrCorrupt, name, "the head", "", err)
	}
	return read(g, s, h)
}

func (j *Journal) readProgram(r pebble.Reader, g *graph, h head) ([]byte, error) {
	if h.programRevision == 0 {
		return nil, nil
	}
	where := fmt.Sprintf("the program of revision %d", h.programRevision)
	v, closer, err := r.Get(g.programKey(h.programRevision))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, j.damage(journal.ErrCorrupt, g.name, where, "it is missing", nil)
	}
	if err != nil {
		return nil, j.readError(g.name, where, err)
	}
	program, err := parseProgram(v)
	if err == nil {
		program = append([]byte{}, program...) // an empty program is not nil
	}
	if err := errors.Join(err, closer.Close()); err != nil {
		return nil, j.damage(journal.ErrCorrupt, g.name, where, "", err)
	}
	return program, nil
}

func (j *Journal) visitFacts(
	ctx context.Context, s *pebble.Snapshot, g *graph, h head, visit func(journal.Mutation) error,
) error {
	it, err := s.NewIter(&pebble.IterOptions{
		LowerBound: g.facts, UpperBound: sectionEnd(g.facts),
	})
	if err != nil {
		return j.readError(g.name, "the facts", err)
	}
	defer it.Close()
	var seen journal.FactSet
	for ok := it.First(); ok; ok = it.Next() {
		if seen.Count%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		fact := it.Key()[len(g.facts):]
		if len(fact) < 4 {
			where := fmt.Sprintf("key %q", it.Key())
			return j.damage(journal.ErrCorrupt, g.name, where, "names no fact", nil)
		}
		seen.Add(fact)
		tuple := fact[4:len(fact):len(fact)]
		m := journal.Mutation{Relation: binary.BigEndian.Uint32(fact), Tuple: tuple}
		if err := visit(m); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return j.readError(g.name, "the facts", err)
	}
	if seen != h.facts {
		return j.damage(journal.ErrCorrupt, g.name, "the facts", fmt.Sprintf(
			"%d with sum %016x are there, the head at revision %d counts %d with sum %016x",
			seen.Count, seen.Sum, h.Revision, h.facts.Count, h.facts.Sum), nil)
	}
	return nil
}

// storedRecord is what the checks need of a record.
type storedRecord struct {
	journal.Record
	previous journal.Hash
	hash     journal.Hash
	revision uint64 // of the key; Record.Revision is equal
}

// readRecord reads the record under the iterator.
func (j *Journal) readRecord(g *graph, it *pebble.Iterator) (storedRecord, error) {
	var r storedRecord
	err := j.readRecordInto(&r, g, it)
	return r, err
}

func (j *Journal) readRecordInto(r *storedRecord, g *graph, it *pebble.Iterator) (err error) {
	if r.revision, err = g.revisionOf(it.Key()); err != nil {
		return j.damage(journal.ErrCorrupt, g.name, "the records", "", err)
	}
	where := fmt.Sprintf("record %d", r.revision)
	v, err := it.ValueAndErr()
	if err != nil {
		return j.readError(g.name, where, err)
	}
	if r.previous, err = journal.ParseRecord(&r.Record, v); err != nil {
		return j.damage(journal.ErrCorrupt, g.name, where, "", err)
	}
	if r.Revision != r.revision {
		what := fmt.Sprintf("it says revision %d", r.Revision)
		return j.damage(journal.ErrCorrupt, g.name, where, what, nil)
	}
	r.hash = sha256.Sum256(v)
	return nil
}

func (g *graph) revisionOf(key []byte) (uint64, error) {
	rest, ok := bytes.CutPrefix(key, g.records)
	if !ok || len(rest) != 8 {
		return 0, fmt.Errorf("key %q names no record", key)
	}
	return binary.BigEndian.Uint64(rest), nil
}

// Replay yields records in order. See journal.Journal.
func (j *Journal) Replay(
	ctx context.Context, name string, from uint64,
) iter.Seq2[*journal.Record, error] {
	return func(yield func(*journal.Record, error) bool) {
		goOn := true
		err := j.view(name, func(g *graph, s *pebble.Snapshot, h head) error {
			return j.replay(ctx, s, g, h, from, func(r *journal.Record) bool {
				goOn = yield(r, nil)
				return goOn
			})
		})
		if err != nil && goOn {
			yield(nil, fmt.Errorf("replay of graph %q: %w", name, err))
		}
	}
}

func (j *Journal) replay(
	ctx context.Context, s *pebble.Snapshot, g *graph, h head, from uint64,
	yield func(*journal.Record) bool,
) error {
	if from == 0 {
		from = h.first
	}
	switch {
	case from < h.first:
		return askedGap(g, from, "oldest kept", h.first)
	case from > h.Revision+1:
		return askedGap(g, from, "newest", h.Revision)
	}
	if from == h.Revision+1 {
		return nil
	}
	it, err := s.NewIter(&pebble.IterOptions{
		LowerBound: g.recordKey(from), UpperBound: g.recordKey(h.Revision + 1),
	})
	if err != nil {
		return j.readError(g.name, "the records", err)
	}
	defer it.Close()
	var r storedRecord
	var last journal.Hash
	next := from
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := j.readRecordInto(&r, g, it); err != nil {
			return err
		}
		if err := j.checkLink(g, &r, next, from, last); err != nil {
			return err
		}
		last, next = r.hash, next+1
		if r.revision == h.Revision && last != h.Hash {
			break // said below, before anybody uses the record
		}
		if !yield(&r.Record) {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return j.readError(g.name, fmt.Sprintf("record %d", next), err)
	}
	switch {
	case next <= h.Revision:
		return j.damage(journal.ErrGap, g.name, fmt.Sprintf("record %d", next), fmt.Sprintf(
			"it is missing, and the head is at revision %d", h.Revision), nil)
	case next > from && last != h.Hash:
		record := fmt.Sprintf("record %d", h.Revision)
		return j.damage(journal.ErrCorrupt, g.name, record, fmt.Sprintf(
			"its hash is %x…, the head names %x…", last[:8], h.Hash[:8]), nil)
	}
	return nil
}

// checkLink holds a record against the one before it.
func (j *Journal) checkLink(g *graph, r *storedRecord, next, from uint64, last journal.Hash) error {
	where := fmt.Sprintf("record %d", r.revision)
	if r.revision != next {
		return j.damage(journal.ErrGap, g.name, fmt.Sprintf("record %d", next), fmt.Sprintf(
			"it is missing, the next one there is %d", r.revision), nil)
	}
	// The first one's link cannot be checked unless it begins the chain.
	if (next > from || next == 1) && r.previous != last {
		return j.damage(journal.ErrCorrupt, g.name, where, fmt.Sprintf(
			"it follows hash %x…, the record before has %x…", r.previous[:8], last[:8]), nil)
	}
	return nil
}

// askedGap is a gap that the caller asked for: nothing is wrong with the disk.
func askedGap(g *graph, from uint64, which string, revision uint64) error {
	return &journal.DamageError{
		Kind: journal.ErrGap, Graph: g.name, Where: "the records",
		What:   fmt.Sprintf("revision %d was asked for, the %s is %d", from, which, revision),
		Remedy: "begin from State",
	}
}

// Idempotent returns the receipt that a key left. See journal.Journal.
func (j *Journal) Idempotent(
	_ context.Context, name, caller, key string,
) (*journal.Receipt, error) {
	g, err := j.graph(name)
	if err != nil {
		return nil, fmt.Errorf("receipt in graph %q: %w", name, err)
	}
	defer j.calls.Done()
	r, err := j.readReceipt(g, appendReceiptKey(nil, g.prefix, caller, key))
	if err != nil {
		return nil, fmt.Errorf("receipt in graph %q: %w", name, err)
	}
	return r, nil
}

func (j *Journal) readReceipt(g *graph, key []byte) (*journal.Receipt, error) {
	v, closer, err := j.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, j.readError(g.name, "a receipt", err)
	}
	r, err := parseReceipt(v)
	r.Answer = bytes.Clone(r.Answer)
	if err := errors.Join(err, closer.Close()); err != nil {
		where := fmt.Sprintf("receipt key %q", key)
		return nil, j.damage(journal.ErrCorrupt, g.name, where, "", err)
	}
	return &r, nil
}
