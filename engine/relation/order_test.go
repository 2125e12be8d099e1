package relation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine/value"
)

// backward orders ids from 1<<31 up from the greatest to the smallest, after
// inline ones.
type backward struct{}

func (backward) Compare(a, b value.ID) int {
	if a < inlineMax || b < inlineMax {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

// check panics unless a subtree has the shape of one, and returns its rows.
func (o *Order) check(ref uint32, isRoot bool, rows []RowID) []RowID {
	n := o.blocks.at(ref)
	if nodeCount(n) == 0 || isInner(n) && isRoot && nodeCount(n) == 1 {
		panic("a node has too few children")
	}
	if !isInner(n) {
		if !isRoot && nodeClass(n) != orderWidest {
			panic("a leaf below a root is narrow")
		}
		for i := range nodeCount(n) {
			rows = append(rows, leafEntry(n, i).row)
		}
		return rows
	}
	for i := range nodeCount(n) {
		before := len(rows)
		rows = o.check(n[orderHead+i], false, rows)
		if i > 0 && bound(n, i) != o.entryOf(rows[before]) {
			panic("a bound is not the first entry")
		}
		if len(rows)-before != int(n[orderSizes+i]) {
			panic("a size is wrong")
		}
	}
	return rows
}

func TestOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 1))
	for round := range 60 {
		by := []Sort{{Column: 1, Descending: round&1 != 0}, {Column: 0, Descending: round&2 != 0}}
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) { testOrder(t, g, by) })
	}
}

func testOrder(t *testing.T, g *rand.Rand, by []Sort) {
	r := New(2, 0)
	o := NewOrder(r, by, backward{})
	const sequences = 3
	var roots [sequences]Root
	var want [sequences][]RowID
	values := []int{3, 100, 1 << 20}[g.IntN(3)]
	compare := func(a, b RowID) int {
		for _, s := range by {
			c := backward{}.Compare(r.Row(a)[s.Column], r.Row(b)[s.Column])
			if s.Descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	}
	for step := range 6000 {
		s := g.IntN(sequences) * g.IntN(2)
		grow := step/1500%2 == 0 == (g.IntN(5) > 0)
		if grow || len(want[s]) == 0 {
			cells := []value.ID{value.ID(g.IntN(1 << 30)), value.ID(g.IntN(values))}
			if g.IntN(2) == 0 {
				cells[1] += inlineMax
			}
			if step/1500 == 2 {
				cells[1] = value.ID(step) // in order
			}
			id, made := r.Add(cells)
			if !made {
				continue
			}
			at, _ := slices.BinarySearchFunc(want[s], id, compare)
			var rank int
			roots[s], rank = o.Insert(roots[s], id)
			want[s] = slices.Insert(want[s], at, id)
			if rank != at {
				t.Fatalf("inserted at %d, want %d", rank, at)
			}
		} else {
			at := g.IntN(len(want[s]))
			if g.IntN(3) == 0 {
				at = 0
			}
			id := want[s][at]
			var rank int
			roots[s], rank = o.Delete(roots[s], id)
			want[s] = slices.Delete(want[s], at, at+1)
			r.Drop(id)
			if rank != at {
				t.Fatalf("deleted at %d, want %d", rank, at)
			}
		}
		if step%100 == 0 {
			for s := range sequences {
				compareSequence(t, o, roots[s], want[s])
			}
		}
	}
	for s := range sequences {
		for len(want[s]) > 5 {
			at := g.IntN(len(want[s]))
			roots[s], _ = o.Delete(roots[s], want[s][at])
			r.Drop(want[s][at])
			want[s] = slices.Delete(want[s], at, at+1)
		}
		compareSequence(t, o, roots[s], want[s])
		o.Free(roots[s])
	}
}

func compareSequence(t *testing.T, o *Order, root Root, want []RowID) {
	t.Helper()
	if o.Len(root) != len(want) {
		t.Fatalf("%d rows, want %d", o.Len(root), len(want))
	}
	if len(want) == 0 {
		if root != 0 {
			t.Fatal("an empty sequence has a root")
		}
		return
	}
	if got := o.check(uint32(root), true, nil); !slices.Equal(got, want) {
		t.Fatalf("rows %v, want %v", got, want)
	}
	for rank, id := range want {
		if got := o.At(root, rank); got != id {
			t.Fatalf("row %d at rank %d, want %d", got, rank, id)
		}
	}
	if got := o.Last(root); got != want[len(want)-1] {
		t.Fatalf("last row %d", got)
	}
}

// TestOrderKeepsItsMemory fills and empties sequences, and moves a window along.
func TestOrderKeepsItsMemory(t *testing.T) {
	r := New(1, 0)
	o := NewOrder(r, []Sort{{}}, backward{})
	var root Root
	var queue []RowID
	put := func(i int) {
		id, _ := r.Add([]value.ID{value.ID(i)})
		root, _ = o.Insert(root, id)
		queue = append(queue, id)
	}
	take := func(at int) {
		root, _ = o.Delete(root, queue[at])
		r.Drop(queue[at])
		queue = slices.Delete(queue, at, at+1)
	}
	for i := range 2000 {
		put(i)
	}
	bytes := o.Bytes()
	for i := range 50000 {
		put(2000 + i)
		take(0)
	}
	if grown := o.Bytes(); grown > bytes+bytes/4 {
		t.Errorf("a moving window took %d bytes, then %d", bytes, grown)
	}
	for len(queue) > 0 {
		take(len(queue) / 2)
	}
	if root != 0 {
		t.Error("an empty sequence has a root")
	}
	for i := range 60000 {
		put(i)
	}
	for len(queue) > 0 {
		take(len(queue) - 1)
	}
	if n := o.Bytes(); n != 0 {
		t.Errorf("empty sequences take %d bytes", n)
	}
}

func BenchmarkOrder(b *testing.B) {
	for _, size := range []int{1, 10, 1000, 1000000} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			g := rand.New(rand.NewPCG(1, 1))
			r := New(2, 1)
			o := NewOrder(r, []Sort{{Column: 1}}, backward{})
			ids := make([]RowID, 2*size)
			order := g.Perm(1 << 22)
			var root Root
			for i := range ids {
				ids[i], _ = r.Add([]value.ID{0, value.ID(order[i])})
			}
			for _, id := range ids[:size] {
				root, _ = o.Insert(root, id)
			}
			b.ReportAllocs()
			for b.Loop() {
				i, j := g.IntN(size), size+g.IntN(size)
				root, _ = o.Insert(root, ids[j])
				root, _ = o.Delete(root, ids[i])
				ids[i], ids[j] = ids[j], ids[i]
			}
			b.ReportMetric(float64(o.Bytes())/float64(size), "bytes/row")
		})
	}
}

// TestOrderWithoutColumns keeps the one row that a sequence by nothing can have.
func TestOrderWithoutColumns(t *testing.T) {
	r := New(0, 0)
	o := NewOrder(r, nil, backward{})
	id, _ := r.Add(nil)
	root, rank := o.Insert(0, id)
	if rank != 0 || o.Len(root) != 1 || o.At(root, 0) != id {
		t.Errorf("rank %d of %d rows", rank, o.Len(root))
	}
	if root, _ = o.Delete(root, id); root != 0 {
		t.Error("an empty sequence has a root")
	}
}
