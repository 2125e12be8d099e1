package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// okShown is how many rows as expected stand between others that are not; of more,
// only the number is told. rowsShown is how many lines a difference has at most.
const (
	okShown   = 4
	rowsShown = 100
)

// difference tells how the rows that are there differ from those that are wanted, a
// line for each; "" if they do not. It sorts both.
func difference(want, got []row) string {
	want, got = slices.SortedFunc(slices.Values(want), compareRows),
		slices.SortedFunc(slices.Values(got), compareRows)
	var lines, ok []string
	wrong := 0
	flush := func() {
		if len(ok) > okShown {
			ok = []string{fmt.Sprintf("ok          … %s", counted(len(ok), "row"))}
		}
		lines, ok = append(lines, ok...), nil
	}
	for len(want) > 0 || len(got) > 0 {
		order := 0
		switch {
		case len(want) == 0:
			order = 1
		case len(got) == 0:
			order = -1
		default:
			order = compareRows(want[0], got[0])
		}
		switch {
		case order == 0:
			ok = append(ok, "ok          "+want[0].String())
		case order < 0:
			flush()
			lines = append(lines, "missing     "+want[0].String())
			wrong++
		default:
			flush()
			lines = append(lines, "unexpected  "+got[0].String())
			wrong++
		}
		if order <= 0 {
			want = want[1:]
		}
		if order >= 0 {
			got = got[1:]
		}
	}
	if wrong == 0 {
		return ""
	}
	flush()
	if more := len(lines) - rowsShown; more > 0 {
		lines = append(lines[:rowsShown], fmt.Sprintf("… and %s", counted(more, "line")))
	}
	return strings.Join(lines, "\n")
}

// inOrder lists rows that are right but for their order.
func inOrder(rows []row) string {
	lines := []string{"the rows are right, and their order is"}
	for i, r := range rows {
		if i == rowsShown {
			lines = append(lines, "… and "+counted(len(rows)-i, "line"))
			break
		}
		lines = append(lines, r.String())
	}
	return strings.Join(lines, "\n")
}
