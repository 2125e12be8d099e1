package relation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/heddle-live/heddle/engine/value"
)

// pinnedModel is what a pinned state should show, and a reader that goes through one
// list of it while the relation changes.
type pinnedModel struct {
	pin     Pin
	ended   bool
	rows    model // the visible ones
	reading *Index
	key     [3]value.ID
	at      Ref
	met     map[[3]value.ID]bool
}

// TestPins changes a relation at random while states of it are pinned, and compares
// each state with a copy, by every access path, amid the changes.
func TestPins(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, domain := range []int{3, 6, 20} {
		t.Run(fmt.Sprintf("domain=%d", domain), func(t *testing.T) {
			g := rand.New(rand.NewPCG(seed, uint64(domain)))
			p := &pinTest{T: t, g: g, r: New(3, 0), rows: model{}, domain: domain}
			kept := counter{}
			p.r.Retain(kept)
			for _, set := range []Columns{0b001, 0b010, 0b110} {
				p.r.Index(set)
			}
			for step := range 30_000 {
				p.operate()
				if step%1000 == 999 {
					p.deploy()
				}
				if t.Failed() {
					t.Fatalf("at step %d", step)
				}
			}
			for _, m := range p.pins {
				p.end(m)
			}
			for len(p.pins) > 0 {
				p.sweep()
			}
			p.checkEnd(kept)
		})
	}
}

type pinTest struct {
	*testing.T
	g      *rand.Rand
	r      *Relation
	rows   model
	pins   []*pinnedModel
	domain int
}

// operate changes a row, or begins, reads, ends or sweeps a pin.
func (p *pinTest) operate() {
	switch n := p.g.IntN(100); {
	case n == 0 && len(p.pins) < PinsMax:
		p.begin()
	case n == 1 && len(p.pins) > 0:
		p.end(p.pins[p.g.IntN(len(p.pins))])
	case n < 4:
		p.sweep()
	case n == 4:
		p.compare()
	case n < 20 && len(p.pins) > 0:
		p.read(p.pins[p.g.IntN(len(p.pins))])
	default:
		p.change()
	}
}

func (p *pinTest) randomRow() (key [3]value.ID) {
	for c := range key {
		key[c] = value.ID(p.g.IntN(p.domain))
	}
	return key
}

func (p *pinTest) change() {
	key := p.randomRow()
	visible, present := p.rows[key]
	id, found := p.r.Find(key[:])
	if found != present || found && p.r.IsVisible(id) != visible {
		p.Fatalf("row %v is found %v, want %v", key, found, present)
	}
	switch {
	case !present:
		id, made := p.r.Add(key[:])
		if !made || p.r.Flags(id)&(CallerFlags|Visible) != 0 {
			p.Fatalf("row %v: made %v, flags %b", key, made, p.r.Flags(id))
		}
		p.r.SetFlags(id, 2)
		if p.rows[key] = p.g.IntN(8) > 0; p.rows[key] {
			p.r.Show(id)
		}
	case visible:
		p.r.Hide(id)
		p.rows[key] = false
		if p.g.IntN(4) > 0 {
			p.r.Drop(id)
			delete(p.rows, key)
		}
	case p.g.IntN(2) == 0:
		p.r.Show(id)
		p.rows[key] = true
	default:
		p.r.Drop(id)
		delete(p.rows, key)
	}
}

func (p *pinTest) begin() {
	used := map[Pin]bool{}
	for _, m := range p.pins {
		used[m.pin] = true
	}
	m := &pinnedModel{pin: 1, rows: model{}}
	for used[m.pin] {
		m.pin++
	}
	for key, visible := range p.rows {
		if visible {
			m.rows[key] = true
		}
	}
	p.r.Pin(m.pin)
	p.pins = append(p.pins, m)
}

func (p *pinTest) end(m *pinnedModel) {
	if !m.ended {
		if m.at != 0 {
			p.r.Unguard(m.at)
		}
		p.r.Unpin(m.pin)
		m.ended = true
	}
}

func (p *pinTest) sweep() {
	kept := p.pins[:0]
	for _, m := range p.pins {
		if !m.ended || p.r.Sweep(m.pin, 50) {
			kept = append(kept, m)
		}
	}
	p.pins = kept
}

// read makes one step of a pin's reader, which it may begin.
func (p *pinTest) read(m *pinnedModel) {
	if m.ended {
		return
	}
	if m.at == 0 {
		m.reading = p.r.indexes[p.g.IntN(len(p.r.indexes))]
		if m.reading.forgotten {
			return
		}
		m.key, m.met = p.randomRow(), map[[3]value.ID]bool{}
		m.at = m.reading.FirstLinked(m.key[:len(m.reading.columns)])
	} else {
		at := m.at
		if p.r.VisibleAt(at.Row(), m.pin) {
			cells := cellsOf(p.r, at.Row())
			if !m.rows[cells] || m.met[cells] {
				p.Errorf("pin %d reads %v", m.pin, cells)
			}
			m.met[cells] = true
		}
		m.at = m.reading.NextLinked(at)
		p.r.Unguard(at)
	}
	if m.at != 0 {
		p.r.Guard(m.at)
		return
	}
	for cells := range m.rows {
		wanted := true
		for i, c := range m.reading.columns {
			wanted = wanted && cells[c] == m.key[i]
		}
		if wanted != m.met[cells] {
			p.Errorf("pin %d: list %v of columns %b holds %v: %v, want %v",
				m.pin, m.key, m.reading.set, cells, m.met[cells], wanted)
		}
	}
}

// deploy adds and forgets an index.
func (p *pinTest) deploy() {
	added := Columns(1 + p.g.IntN(6))
	p.r.Index(added)
	p.r.KeepIndexes(func(ix *Index) bool {
		return ix.Columns() == 1 || ix.Columns() == added || p.g.IntN(2) == 0
	})
}

// compare looks at every state by scans and by key.
func (p *pinTest) compare() {
	var sets []Columns
	for _, ix := range p.r.indexes {
		if !ix.forgotten {
			sets = append(sets, ix.set)
		}
	}
	compareAll(p.T, p.r, p.rows, sets)
	for _, m := range p.pins {
		if m.ended {
			continue
		}
		if n := p.r.LenAt(m.pin); n != len(m.rows) {
			p.Errorf("pin %d: %d rows, want %d", m.pin, n, len(m.rows))
		}
		met := model{}
		end := RowID(p.r.MadeAt(m.pin))
		for id, ok := p.r.NextAt(m.pin, 0, end, -1, 0); ok; {
			met[cellsOf(p.r, id)] = true
			id, ok = p.r.NextAt(m.pin, id+1, end, -1, 0)
		}
		if !maps.Equal(met, m.rows) {
			p.Errorf("pin %d: a scan meets %d rows, want %d", m.pin, len(met), len(m.rows))
		}
		key := p.randomRow()
		if _, ok := p.r.FindAt(key[:], m.pin); ok != m.rows[key] {
			p.Errorf("pin %d: row %v is found %v", m.pin, key, ok)
		}
		detached := p.r.Detached(0b011, m.pin, nil)
		n, want := 0, 0
		for at := detached.First(key[:2]); at != 0; at = detached.Next(at) {
			n++
		}
		for cells := range m.rows {
			if cells[0] == key[0] && cells[1] == key[1] {
				want++
			}
		}
		if n != want {
			p.Errorf("pin %d: a detached list has %d rows, want %d", m.pin, n, want)
		}
	}
}

// checkEnd checks that nothing of the pins is left.
func (p *pinTest) checkEnd(kept counter) {
	p.compare()
	if p.r.lingerers != 0 || p.r.deferring != 0 || p.r.rows != len(p.rows) {
		p.Errorf("%d lingering rows, deferring %b, %d rows, want %d",
			p.r.lingerers, p.r.deferring, p.r.rows, len(p.rows))
	}
	for id := range RowID(p.r.made) {
		if flags := p.r.Flags(id); flags&^(CallerFlags|Visible) != 0 {
			p.Fatalf("row %d keeps flags %b", id, flags)
		}
	}
	want := counter{}
	for key := range p.rows {
		want.RetainRow(key[:])
	}
	if !maps.Equal(kept, want) {
		p.Errorf("ids are kept %v times, want %v", kept, want)
	}
}

// TestPinGivesMemoryBack replaces every row of a pinned relation several times.
func TestPinGivesMemoryBack(t *testing.T) {
	r := New(2, 0)
	r.Index(1)
	const rows = 50_000
	fill := func(round value.ID) {
		for i := range value.ID(rows) {
			if id, ok := r.Find([]value.ID{i, round - 1}); ok {
				r.Hide(id)
				r.Drop(id)
			}
			id, _ := r.Add([]value.ID{i, round})
			r.Show(id)
		}
	}
	fill(1)
	fill(2)
	before := r.Bytes()
	r.Pin(3)
	fill(3)
	fill(4)
	fill(5)
	if most := 3*before + 8*rows; r.Bytes() > most {
		t.Errorf("%d bytes while pinned, want at most %d", r.Bytes(), most)
	}
	if r.lingerers != rows {
		t.Errorf("%d rows linger, want %d: what came and went is to go", r.lingerers, rows)
	}
	r.Unpin(3)
	sweeps := 1
	for ; r.Sweep(3, 500); sweeps++ {
	}
	if sweeps < 2*rows/1000 {
		t.Errorf("all is swept in %d pieces", sweeps)
	}
	if r.lingerers != 0 || r.rows != rows || r.pinned.bytes() != 0 {
		t.Errorf("after sweeping %d rows linger of %d, %d bytes of pins",
			r.lingerers, r.rows, r.pinned.bytes())
	}
	made := r.Made()
	for round := range value.ID(4) {
		fill(6 + round)
	}
	if r.Made() > made {
		t.Errorf("rows grow from %d to %d: ids are not used again", made, r.Made())
	}
}
