package engine

import (
	"math"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/value"
)

const (
	// runCells is how many cells are sorted at once, and pieceValues how many values a
	// piece of a pinned query's answer holds: no allocation or copy is so large that
	// writers would wait for it.
	runCells    = 1 << 13
	pieceValues = 1000
)

// collector takes the rows that a query finds, in any order, and gives those of them
// that are wanted, in order and each once. It sorts runs of rows and merges them.
type collector struct {
	by      *evaluator
	outputs []dataflow.Source
	width   int              // cells of a row, at least 1
	keys    []analysis.Order // what rows are compared by
	from    int              // rows of the result that are left out
	to      int              // and the first after those that count
	most    int              // rows that have to be known
	repeats bool             // rows may be found more than once

	run   []value.ID // that is being collected
	order []uint32   // where its rows begin, sorted
	runs  [][]value.ID
	kept  int        // rows in runs
	full  int        // so many are too many
	bound []value.ID // no row from here on is wanted; nil if that is not known
}

// begin makes the collector ready for a query, whose rows come with repetitions or not.
func (c *collector) begin(by *evaluator, outputs []dataflow.Source, repeats bool) {
	q, opt := by.query, &by.options
	c.by, c.outputs, c.width, c.repeats = by, outputs, max(len(outputs), 1), repeats
	c.from, c.to = 0, math.MaxInt
	if q.Limit > 0 {
		c.from = max(q.Offset, 0)
		c.to = sum(c.from, q.Limit)
	}
	c.from = min(sum(c.from, max(opt.Offset, 0)), c.to)
	if c.most = c.to; opt.MaxRows > 0 {
		c.most = min(c.most, sum(sum(c.from, opt.MaxRows), 1))
	}
	c.keys = append(c.keys[:0], q.Order...)
	for column, o := range outputs {
		if o.Column >= len(by.key) { // a parameter is the same in all rows
			c.keys = append(c.keys, analysis.Order{Column: column})
		}
	}
	c.run, c.runs, c.kept, c.bound = c.run[:0], nil, 0, nil
	c.full = 4 * runCells / c.width
}

// sum adds two numbers that are not negative.
func sum(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// end forgets the query.
func (c *collector) end() {
	c.by, c.outputs, c.runs, c.bound = nil, nil, nil, nil
	if cap(c.run) > 2*runCells {
		c.run = nil
	}
}

// take receives a row, which has a result's columns.
func (c *collector) take(row []value.ID) {
	at := len(c.run)
	for _, o := range c.outputs {
		cell := o.Constant
		if o.Column >= 0 {
			cell = row[o.Column]
		}
		c.run = append(c.run, cell)
	}
	if len(c.outputs) == 0 {
		c.run = append(c.run, 0)
	}
	switch {
	case c.bound != nil && c.compare(c.run[at:], c.bound) >= 0:
		c.run = c.run[:at]
	case len(c.run) >= max(runCells, c.width):
		c.endRun()
	}
}

// compare compares two rows in the query's order.
func (c *collector) compare(x, y []value.ID) int {
	const firstEntry = 1 << 31 // ids below it are ints
	v := c.by
	if v.tick(); v.stopped {
		return 0
	}
	for _, k := range c.keys {
		a, b := x[k.Column], y[k.Column]
		if a == b {
			continue
		}
		if k.Descending {
			a, b = b, a
		}
		switch {
		case a >= firstEntry || b >= firstEntry:
			return v.symbols.Compare(a, b)
		case a < b:
			return -1
		default:
			return 1
		}
	}
	return 0
}

// sort sorts the run: order then has those of its rows that may be wanted.
func (c *collector) sort() {
	c.order = c.order[:0]
	for at := 0; at < len(c.run); at += c.width {
		c.order = append(c.order, uint32(at))
	}
	slices.SortFunc(c.order, func(a, b uint32) int { return c.compare(c.run[a:], c.run[b:]) })
	if c.repeats {
		c.order = slices.CompactFunc(c.order, func(a, b uint32) bool {
			return c.compare(c.run[a:], c.run[b:]) == 0
		})
	}
	c.order = c.order[:min(len(c.order), c.most)]
}

// endRun sorts the run and puts it to those that are done.
func (c *collector) endRun() {
	if c.by.stopped {
		c.run = c.run[:0]
		return
	}
	c.sort()
	sorted := make([]value.ID, 0, len(c.order)*c.width)
	for _, at := range c.order {
		sorted = append(sorted, c.run[at:int(at)+c.width]...)
	}
	c.run = c.run[:0]
	c.addRun(sorted)
	if c.kept >= c.full && (c.repeats || c.most < math.MaxInt) {
		c.compact()
	}
}

func (c *collector) addRun(sorted []value.ID) {
	rows := len(sorted) / c.width
	if rows == 0 {
		return
	}
	c.runs = append(c.runs, sorted)
	c.kept += rows
	if last := sorted[len(sorted)-c.width:]; rows == c.most &&
		(c.bound == nil || c.compare(last, c.bound) < 0) {
		c.bound = last
	}
}

// compact merges the runs into new ones without rows that are not wanted.
func (c *collector) compact() {
	old := c.runs
	c.runs, c.kept = nil, 0
	var run []value.ID
	rows := 0
	c.merge(old, func(row []value.ID) bool {
		if len(run) == cap(run) {
			c.addRun(run)
			run = make([]value.ID, 0, max(runCells/c.width, 1)*c.width)
		}
		run = append(run, row...)
		rows++
		return rows < c.most
	})
	c.addRun(run)
	if rows == c.most {
		c.bound = run[len(run)-c.width:]
	}
	c.full = 2*c.kept + 4*runCells/c.width
}

// merge calls yield for the rows of sorted runs in order, until it returns false.
func (c *collector) merge(runs [][]value.ID, yield func(row []value.ID) bool) {
	heap := slices.Clone(runs) // what is left of each, the run with the smallest row first
	sink := func(i int) {
		for {
			down := 2*i + 1
			if down >= len(heap) {
				return
			}
			if down+1 < len(heap) && c.compare(heap[down+1], heap[down]) < 0 {
				down++
			}
			if c.compare(heap[i], heap[down]) <= 0 {
				return
			}
			heap[i], heap[down] = heap[down], heap[i]
			i = down
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(i)
	}
	var last []value.ID
	for len(heap) > 0 && !c.by.stopped {
		row := heap[0][:c.width]
		if !c.repeats || last == nil || c.compare(last, row) != 0 {
			if !yield(row) {
				return
			}
			last = row
		}
		if heap[0] = heap[0][c.width:]; len(heap[0]) == 0 {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(0)
	}
}

// finish puts the wanted rows into the answer.
func (c *collector) finish() {
	if len(c.runs) > 0 {
		c.endRun()
	} else {
		c.sort()
		c.kept = len(c.order)
	}
	most := min(c.to, c.kept) - c.from
	if n := c.by.options.MaxRows; n > 0 {
		most = min(most, n)
	}
	out := &c.by.out
	a := answer{collector: c, out: out, rows: max(most, 0)}
	if len(c.runs) > 0 {
		c.merge(c.runs, a.add)
	} else {
		for _, at := range c.order {
			if !a.add(c.run[at : int(at)+c.width]) {
				break
			}
		}
	}
	if out.Rows = a.piece; len(out.pieces) > 0 {
		out.pieces, out.Rows = append(out.pieces, a.piece), nil
	}
	c.end()
}

// answer is the answer to a query in the making.
type answer struct {
	*collector
	out   *QueryResult
	row   int // of the result
	rows  int // of the answer that may be to come
	piece []value.Value
}

// add takes the next row of the result and reports whether another one is wanted.
func (a *answer) add(row []value.ID) bool {
	a.row++
	if a.row <= a.from {
		return true
	}
	if a.row > a.to {
		return false
	}
	if n := a.by.options.MaxRows; n > 0 && a.out.Count == n {
		a.out.Truncated = true
		return false
	}
	width := len(a.outputs)
	if a.by.stops != nil {
		if a.by.tick(); a.by.stopped {
			return false
		}
	}
	if len(a.piece)+width > cap(a.piece) {
		a.grow(width)
	}
	for _, cell := range row[:width] {
		a.piece = append(a.piece, a.by.symbols.Value(cell))
	}
	a.out.Count++
	a.rows--
	return true
}

// grow begins a piece, for all rows to come if the query is not worked at in turns.
func (a *answer) grow(width int) {
	rows := a.rows
	if a.by.stops != nil {
		rows = min(rows, max(pieceValues/width, 1))
	}
	if a.piece != nil {
		a.out.pieces = append(a.out.pieces, a.piece)
	}
	a.piece = make([]value.Value, 0, max(rows, 1)*width)
}
