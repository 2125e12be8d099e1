package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/value"
)

const (
	changesPrograms = 40
	changesTogether = 200
)

// TestSameChanges does the same 200 changes one by one, in one batch and shuffled.
// All ways end in the same state, and what each tells adds up to it.
func TestSameChanges(t *testing.T) {
	seed := *oracleSeed
	if seed == 0 {
		seed = rand.Uint64()>>1 + 1
	}
	t.Logf("first seed %d", seed)
	programs := changesPrograms
	if testing.Short() || underRace {
		programs /= 8
		t.Logf("-short or under the race detector: %d programs of %d", programs, changesPrograms)
	}
	for range programs {
		if err := sameChanges(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if *oracleSeed != 0 {
			return
		}
		seed++
	}
}

func sameChanges(seed uint64) error {
	g := newGenerator(seed)
	s := g.program()
	p, err := s.program()
	if err != nil {
		return err
	}
	first, changes := g.changes(p)
	var ways [3]*run
	for i := range ways {
		r := newRun(newSeen())
		ways[i] = r
		if err := r.deploy(s); err != nil {
			return err
		}
		if err := r.ops(first); err != nil {
			return err
		}
		for _, v := range s.views {
			if err := r.watch(v.name, newGenerator(seed).values(v.params)); err != nil {
				return err
			}
		}
	}
	one := func(r *run, changes []analysis.Op) error {
		for i := range changes {
			if err := r.ops(changes[i : i+1]); err != nil {
				return err
			}
			if err := r.changes(); err != nil {
				return err
			}
		}
		return nil
	}
	shuffled := slices.Clone(changes)
	g.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if err := one(ways[0], changes); err != nil {
		return fmt.Errorf("one by one: %w\n%v", err, s)
	}
	if err := ways[1].ops(changes); err != nil {
		return fmt.Errorf("in one batch: %w\n%v", err, s)
	}
	if err := one(ways[2], shuffled); err != nil {
		return fmt.Errorf("shuffled: %w\n%v", err, s)
	}
	for i, r := range ways {
		if err := r.changes(); err != nil {
			return fmt.Errorf("way %d: %w\n%v", i, err, s)
		}
		if err := r.compare(); err != nil {
			return fmt.Errorf("way %d: %w\n%v", i, err, s)
		}
		for j, k := range r.keys {
			for part := range k.Parts() {
				got := r.engine.Rows(k, part, nil)
				want := ways[0].engine.Rows(ways[0].keys[j], part, nil)
				doubt, _ := r.engine.Doubt(k, part)
				if !slices.Equal(got, want) && doubt < engine.Stale {
					return fmt.Errorf("way %d: %s%v has rows %v, way 0 %v\n%v",
						i, k.View(), k.Values(), got, want, s)
				}
			}
		}
	}
	return nil
}

// ops commits plain operations, without asking the slow twin.
func (r *run) ops(ops []analysis.Op) error {
	r.revision++
	if _, _, err := r.engine.Apply(r.revision, ops); err != nil {
		return err
	}
	for _, op := range ops {
		if op.Delete {
			r.facts[op.Relation].Remove(op.Row)
		} else {
			r.facts[op.Relation].Add(op.Row)
		}
	}
	r.database = nil
	return nil
}

// changes draws rows to begin with and changes of which each has a row of its own,
// so that their order means nothing.
func (g *generator) changes(p *analysis.Program) (first, changes []analysis.Op) {
	used := map[string]naive.Set{}
	for range 20 * changesTogether {
		if len(changes) == changesTogether {
			break
		}
		at := g.IntN(len(p.Relations))
		rel := &p.Relations[at]
		if rel.Derived {
			continue
		}
		row := make([]value.Value, len(rel.Columns))
		for i, c := range rel.Columns {
			row[i] = g.value(column{c.Type, c.Nullable})
			if c.Type == value.Int && g.in(2) { // more rows than the small domain has
				row[i] = value.OfInt(int64(g.IntN(12)))
			}
		}
		if used[rel.Name] == nil {
			used[rel.Name] = naive.Set{}
		}
		if !used[rel.Name].Add(row) {
			continue
		}
		op := analysis.Op{Relation: rel.Name, Row: row, Delete: g.in(2)}
		if op.Delete || g.in(10) {
			first = append(first, analysis.Op{Relation: rel.Name, Row: row})
		}
		changes = append(changes, op)
	}
	return first, changes
}
