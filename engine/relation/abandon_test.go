package relation

import (
	"math/rand/v2"
	"testing"

	"github.com/heddle-live/heddle/engine/value"
)

// counter is a Symbols that counts.
type counter map[value.ID]int

func (c counter) RetainRow(row []value.ID) {
	for _, id := range row {
		c[id]++
	}
}

func (c counter) ReleaseRow(row []value.ID) {
	for _, id := range row {
		if c[id]--; c[id] == 0 {
			delete(c, id)
		}
	}
}

// TestRetain counts the cells of the rows that are there, through additions, drops and
// the abandonment of what is left.
func TestRetain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 1))
	for _, size := range []int{10, 20_000} {
		r, kept := New(2, 0), counter{}
		r.Retain(kept)
		rows := map[[2]value.ID]bool{}
		for range 3 * size {
			row := [2]value.ID{value.ID(g.IntN(size)), value.ID(g.IntN(3))}
			id, made := r.Add(row[:])
			if made == rows[row] {
				t.Fatalf("Add(%v) made a row: %v", row, made)
			}
			rows[row] = true
			switch {
			case made && g.IntN(3) == 0:
				r.Show(id)
			case !made && r.IsVisible(id):
				r.Hide(id)
				fallthrough
			case !made:
				r.Drop(id)
				delete(rows, row)
			}
		}
		want := counter{}
		for row := range rows {
			want.RetainRow(row[:])
		}
		if len(kept) != len(want) {
			t.Fatalf("%d ids are kept, want %d", len(kept), len(want))
		}
		for id, n := range want {
			if kept[id] != n {
				t.Fatalf("id %d is kept %d times, want %d", id, kept[id], n)
			}
		}
		pieces := 1
		for ; r.Abandon(100); pieces++ {
		}
		if len(kept) > 0 || pieces < len(rows)/100 {
			t.Errorf("%d ids are kept after %d pieces", len(kept), pieces)
		}
	}
}
