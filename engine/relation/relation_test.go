package relation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine/value"
)

// model is what a relation should hold.
type model map[[3]value.ID]bool // visible or not

func cellsOf(r *Relation, id RowID) (key [3]value.ID) {
	copy(key[:], r.Row(id))
	return key
}

// TestRandomOperations compares relations of several arities, with indexes on
// every kind of column set, with maps.
func TestRandomOperations(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, arity := range []int{0, 1, 2, 3} {
		for _, domain := range []int{3, 40, 3000} {
			t.Run(fmt.Sprintf("arity=%d/domain=%d", arity, domain), func(t *testing.T) {
				g := rand.New(rand.NewPCG(seed, uint64(arity*10_000+domain)))
				r := New(arity, arity%3)
				sets := []Columns{}
				for set := Columns(1); set < 1<<arity-1; set++ {
					sets = append(sets, set)
				}
				rows := model{}
				for step := range 20_000 {
					if step == 2000 {
						for _, set := range sets { // built in bulk
							r.Index(set)
						}
					}
					var key [3]value.ID
					for c := range arity {
						key[c] = value.ID(g.IntN(domain))
					}
					operate(t, g, r, rows, key)
				}
				compareAll(t, r, rows, sets)
				for key, visible := range rows { // and empty again
					id, _ := r.Find(key[:arity])
					if visible {
						r.Hide(id)
					}
					r.Drop(id)
				}
				compareAll(t, r, model{}, sets)
			})
		}
	}
}

func operate(t *testing.T, g *rand.Rand, r *Relation, rows model, key [3]value.ID) {
	t.Helper()
	row := key[:r.Arity()]
	visible, present := rows[key]
	id, found := r.Find(row)
	if found != present || found && r.IsVisible(id) != visible {
		t.Fatalf("row %v found %v, want present %v visible %v", row, found, present, visible)
	}
	switch {
	case !present:
		id, made := r.Add(row)
		if !made || r.Flags(id) != 0 || !slices.Equal(r.Row(id), row) {
			t.Fatalf("new row %v: made %v, flags %b, cells %v", row, made, r.Flags(id), r.Row(id))
		}
		for c := range r.Arity() % 3 {
			if n := r.Counter(id, c); n != 0 {
				t.Fatalf("a new row counts %d", n)
			}
			r.SetCounter(id, c, 1<<(40+c)+uint64(id))
		}
		rows[key] = false
		if g.IntN(4) > 0 {
			r.Show(id)
			rows[key] = true
		}
	case visible:
		if again, made := r.Add(row); made || again != id {
			t.Fatalf("row %v is made twice", row)
		}
		r.SetFlags(id, 4)
		r.Hide(id)
		rows[key] = false
	case g.IntN(2) == 0:
		r.Show(id)
		rows[key] = true
	default:
		for c := range r.Arity() % 3 {
			if n := r.Counter(id, c); n != 1<<(40+c)+uint64(id) {
				t.Fatalf("counter %d is %d", c, n)
			}
		}
		r.Drop(id)
		delete(rows, key)
	}
}

func compareAll(t *testing.T, r *Relation, rows model, sets []Columns) {
	t.Helper()
	visible := 0
	for _, v := range rows {
		if v {
			visible++
		}
	}
	scanned := 0
	for id, ok := r.NextVisible(0); ok; id, ok = r.NextVisible(id + 1) {
		scanned++
		if !rows[cellsOf(r, id)] {
			t.Errorf("scan meets row %v", r.Row(id))
		}
	}
	for c := range r.Arity() {
		matched, want := 0, 0
		for id, ok := r.NextMatch(0, c, 1); ok; id, ok = r.NextMatch(id+1, c, 1) {
			matched++
		}
		for key, v := range rows {
			if v && key[c] == 1 {
				want++
			}
		}
		if matched != want {
			t.Errorf("%d rows match in column %d, want %d", matched, c, want)
		}
	}
	if r.Len() != visible || scanned != visible {
		t.Errorf("%d visible rows, %d scanned, want %d", r.Len(), scanned, visible)
	}
	for _, set := range sets {
		for _, ix := range []*Index{r.Index(set), r.Detached(set, Now, nil)} {
			compareIndex(t, r, ix, rows)
		}
	}
}

func compareIndex(t *testing.T, r *Relation, ix *Index, rows model) {
	t.Helper()
	want := map[[3]value.ID]int{}
	keyOf := func(cells [3]value.ID) (key [3]value.ID) {
		for i, c := range ix.columns {
			key[i] = cells[c]
		}
		return key
	}
	for cells, visible := range rows {
		if visible {
			want[keyOf(cells)]++
		}
	}
	for key, n := range want {
		got := map[RowID]bool{}
		for at := ix.First(key[:len(ix.columns)]); at != 0; at = ix.Next(at) {
			if cells := cellsOf(r, at.Row()); keyOf(cells) != key || !rows[cells] {
				t.Errorf("list of %v holds %v", key, cells)
			}
			got[at.Row()] = true
		}
		if len(got) != n {
			t.Errorf("list of %v has %d rows, want %d", key, len(got), n)
		}
	}
	absent := [3]value.ID{1 << 30, 1 << 30, 1 << 30}
	if ix.First(absent[:len(ix.columns)]) != 0 {
		t.Error("an absent key has rows")
	}
}

// TestGrowth fills a relation far past its first chunk and checks that no table
// has a segment that grows by a large move.
func TestGrowth(t *testing.T) {
	r := New(2, 0)
	ix, unique := r.Index(1), r.Index(2)
	const rows = 300_000
	for i := range value.ID(rows) {
		id, _ := r.Add([]value.ID{i / 10, i})
		r.Show(id)
	}
	if r.Len() != rows || len(r.chunks) != rows/chunkRows+1 {
		t.Fatalf("%d rows in %d chunks", r.Len(), len(r.chunks))
	}
	for _, table := range []*table{&r.set, &ix.heads} {
		if len(table.segments) != segmentCount {
			t.Fatalf("a large table has %d segments", len(table.segments))
		}
		for _, s := range table.segments {
			if len(s.slots) > 8*rows/segmentCount {
				t.Errorf("a segment has %d slots: the hash does not spread", len(s.slots))
			}
		}
	}
	for i := range value.ID(rows) {
		if id, ok := r.Find([]value.ID{i / 10, i}); !ok || id != RowID(i) {
			t.Fatalf("row %d: %v %v", i, id, ok)
		}
		// Among so many keys some share all 32 bits of their hash.
		if at := unique.First([]value.ID{i}); at == 0 || at.Row() != RowID(i) || unique.Next(at) != 0 {
			t.Fatalf("list of key %d begins at %d", i, at)
		}
	}
}

func TestEmptyRelationGivesMemoryBack(t *testing.T) {
	r := New(2, 0)
	r.Index(1)
	const rows = 2 * chunkRows
	for round := range 2 {
		for i := range value.ID(rows) {
			id, made := r.Add([]value.ID{i, i})
			if !made || id != RowID(i) {
				t.Fatalf("round %d: row %d is %d, made %v", round, i, id, made)
			}
			r.Show(id)
		}
		for i := range value.ID(rows) {
			id, _ := r.Find([]value.ID{i, i})
			r.Hide(id)
			r.Drop(id)
		}
		if n := r.Bytes(); n > 1000 {
			t.Errorf("an empty relation holds %d bytes", n)
		}
	}
}

func TestBestIndex(t *testing.T) {
	r := New(3, 0)
	one, two := r.Index(0b001), r.Index(0b011)
	for bound, want := range map[Columns]*Index{0b111: two, 0b011: two, 0b101: one, 0b110: nil} {
		if got := r.BestIndex(bound); got != want {
			t.Errorf("columns %b: %v, want %v", bound, got, want)
		}
	}
	r.KeepIndexes(func(ix *Index) bool { return ix == one })
	if got := r.BestIndex(0b011); got != one {
		t.Errorf("a forgotten index is found: %v", got)
	}
}

func TestOperationsAllocateNothing(t *testing.T) {
	r := New(2, 1)
	r.Index(1)
	for i := range value.ID(1000) {
		id, _ := r.Add([]value.ID{i % 10, i})
		r.Show(id)
	}
	row := []value.ID{3, 5000}
	got := testing.AllocsPerRun(100, func() {
		id, _ := r.Add(row)
		r.Show(id)
		r.Hide(id)
		r.Drop(id)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, rows := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			r := New(2, 0)
			for i := range value.ID(rows) {
				r.Add([]value.ID{i / 10, i})
			}
			g := rand.New(rand.NewPCG(1, 2))
			row := make([]value.ID, 2)
			b.ReportAllocs()
			for b.Loop() {
				i := value.ID(g.IntN(2 * rows)) // half of them are absent
				row[0], row[1] = i/10, i
				r.Find(row)
			}
		})
	}
}
