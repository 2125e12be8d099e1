package views

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-live/heddle/bench/graph"
	"github.com/heddle-live/heddle/sdk/frame"
)

// model is what the viewers must see: the rows of each hot head, as the writes
// made them. For one goroutine.
type model struct {
	graph  graph.Graph
	writes int         // sent so far, over all cells
	extra  map[int]int // head -> the destination that a write added last
}

func newModel(g graph.Graph) *model { return &model{graph: g, extra: map[int]int{}} }

// write is one transaction and what its key's viewer must get.
type write struct {
	body     []byte
	entered  frame.Row
	left     frame.Row // nil if the key had no row of an earlier write
	revision uint64    // from the answer
}

// next makes the next write to a head: a new row, and away with the one that
// the write before it added there.
func (m *model) next(head int) write {
	fresh := m.graph.Fresh(m.writes)
	m.writes++
	w := write{
		body:    fmt.Appendf(nil, `{"insert":{"edge":[[%d,%d]]}`, head, fresh),
		entered: row(head, fresh),
	}
	if old, ok := m.extra[head]; ok {
		w.body = fmt.Appendf(w.body, `,"delete":{"edge":[[%d,%d]]}`, head, old)
		w.left = row(head, old)
	}
	w.body = append(w.body, '}')
	m.extra[head] = fresh
	return w
}

// rows are what a head has now, sorted: its chain's edge and perhaps one more.
func (m *model) rows(head int) []frame.Row {
	rows := []frame.Row{row(head, head+1)}
	if fresh, ok := m.extra[head]; ok {
		rows = append(rows, row(head, fresh))
	}
	return rows
}

func row(src, dst int) frame.Row { return frame.Row{int64(src), int64(dst)} }

// event is one frame at one viewer, or the end of its subscription.
type event struct {
	key    int // number of the viewer
	at     time.Time
	change frame.Change
	err    error
}

// check returns what is wrong with the frame that a write's viewer got, "" if
// nothing.
func (w *write) check(e event) string {
	var left []frame.Row
	if w.left != nil {
		left = []frame.Row{w.left}
	}
	switch c := e.change; {
	case e.err != nil:
		return fmt.Sprintf("viewer %d ended: %v", e.key, e.err)
	case c.Closed != nil:
		return fmt.Sprintf("viewer %d was told that its view closed: %+v", e.key, *c.Closed)
	case c.Outcome != frame.Applied || c.Skipped:
		return fmt.Sprintf("viewer %d: frame of revision %d was %v, skipped=%v",
			e.key, c.Revision, c.Outcome, c.Skipped)
	case c.Revision != w.revision:
		return fmt.Sprintf("viewer %d: frame of revision %d, the write has %d",
			e.key, c.Revision, w.revision)
	case !equalRows(c.Entered, []frame.Row{w.entered}):
		return fmt.Sprintf("viewer %d: entered %v, want %v", e.key, c.Entered, w.entered)
	case !equalRows(c.Left, left):
		return fmt.Sprintf("viewer %d: left %v, want %v", e.key, c.Left, left)
	}
	return ""
}

func equalRows(a, b []frame.Row) bool { return slices.EqualFunc(a, b, slices.Equal) }
