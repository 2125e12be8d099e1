package views_test

import (
	"fmt"
	"testing"

	"github.com/heddle-live/heddle/sdk/frame"
)

const failing = `+item(id: int, a: int, b: int)
+all(id: int)
ratio(I, R) <- item(I, A, B), R = A / B
whole(I) <- ratio(I, _)
odd(I) <- all(I), !whole(I)
view ratios($min: int) := ?ratio(I, R), I >= $min
view page($min: int) := ratios: ?ratio(I, R), I >= $min, odds: ?odd(I), I >= $min
`

func staleCode(s *frame.Stale) string {
	if s == nil {
		return "none"
	}
	return s.Code
}

func (v *viewer) expectParts(wantRatios, wantOdds string) {
	v.f.t.Helper()
	v.read()
	for name, want := range map[string]string{"ratios": wantRatios, "odds": wantOdds} {
		got := fmt.Sprint(v.state.UnitRows(name), " ", staleCode(v.state.UnitStale(name)))
		if got != want {
			v.f.t.Errorf("%s: %s, want %s; log %q", name, got, want, v.log)
		}
	}
}

// TestViewersLearnWhatTheirRowsLack has a rule fail and recover.
func TestViewersLearnWhatTheirRowsLack(t *testing.T) {
	f := start(t)
	f.apply(failing)
	f.write("+item[(1, 6, 3), (2, 9, 3)]\n+all[(1), (2), (3)]")
	plain, page := f.view("g/ratios/0", "rows"), f.view("g/page/0", "rows")
	page.expectParts("[[1 2] [2 3]] none", "[[3]] none")

	f.write("+item(3, 1, 0)") // alone, it changes no row
	plain.expectRows("[[1 2] [2 3]]")
	s := plain.state.Stale()
	if staleCode(s) != frame.StaleIncomplete || s.Rule != "ratio(I, R) <- item(I, A, B), R = A / B" ||
		s.Row != nil || s.Message != "a rule cannot be computed for some rows: division_by_zero" {
		t.Errorf("%+v", s)
	}
	held := plain.state.Revision()
	page.expectParts("[[1 2] [2 3]] incomplete", "[[3]] error")

	f.write("+item(4, 8, 2)\n+all(5)")
	plain.expectRows("[[1 2] [2 3] [4 4]]")
	if r := plain.state.Revision(); r <= held || staleCode(plain.state.Stale()) == "none" {
		t.Errorf("revision %d, stale %+v", r, plain.state.Stale())
	}
	page.expectParts("[[1 2] [2 3] [4 4]] incomplete", "[[3]] error")
	late := f.view("g/page/2", "rows")
	late.expectParts("[[2 3] [4 4]] incomplete", "[] error")

	f.write("-item(3, 1, 0)\n+item(3, 1, 1)")
	plain.expectRows("[[1 2] [2 3] [3 1] [4 4]]")
	if s := plain.state.Stale(); s != nil {
		t.Errorf("%+v", s)
	}
	page.expectParts("[[1 2] [2 3] [3 1] [4 4]] none", "[[5]] none")
	late.expectParts("[[2 3] [3 1] [4 4]] none", "[[5]] none")

	// What fails, fails for watched keys only: it comes and goes with them.
	f.write("+item(1, 1, 0)\n-item(1, 6, 3)")
	f.write("-item(1, 1, 0)\n+item(1, 7, 0)")
	late.expectParts("[[2 3] [3 1] [4 4]] incomplete", "[[5]] error")
	plain.leave()
	page.leave()
	f.settle(1 << 40)
	late.expectParts("[[2 3] [3 1] [4 4]] incomplete", "[[5]] error")
	for _, line := range late.log {
		if len(line) > 3 && line[:3] == "gap" {
			t.Errorf("log %q", late.log)
		}
	}
}
