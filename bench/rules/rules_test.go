package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	tests := []struct {
		name     string
		patterns []string
		first    string // of what is chosen; "" if a pattern is unknown
		count    int
	}{
		{"all", nil, "write/keys=1", len(Names())},
		{"a cell", []string{"write/keys=1000"}, "write/keys=1000", 1},
		{"a group", []string{"negation"}, "negation/leaf", 1},
		{"a group with its slash", []string{"aggregate/max/"}, "aggregate/max/group=10", 3},
		{"a pattern", []string{"aggregate/*/group=10"}, "aggregate/count-sum/group=10", 4},
		{"nothing by half a name", []string{"write", "writ"}, "", 0},
		{"nothing by half a number", []string{"write/keys"}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			names, unknown := Select(tt.patterns)
			if tt.first == "" {
				if unknown != tt.patterns[len(tt.patterns)-1] {
					t.Errorf("unknown %q", unknown)
				}
				return
			}
			if unknown != "" || len(names) != tt.count || names[0] != tt.first {
				t.Errorf("Select = %v, %q", names, unknown)
			}
		})
	}
}

// TestQuick measures every cell that needs no other process, and holds that all are
// in order and have what the promises ask for.
func TestQuick(t *testing.T) {
	var only []string
	for _, name := range Names() {
		if !strings.HasPrefix(name, "loop/") {
			only = append(only, name)
		}
	}
	r, err := Run(t.Context(), Options{Edges: 5000, Runs: 2, Quick: true, Only: only})
	if err != nil {
		t.Fatal(err)
	}
	limits := 0
	for i, c := range r.Cells {
		if c.Name != only[i] || !c.OK {
			t.Errorf("cell %s: %v", c.Name, c.Problems)
		}
		if len(c.Metrics) < 2 || c.Method == "" || len(c.Spread) == 0 {
			t.Errorf("cell %s is bare: %+v", c.Name, c)
		}
		limits += len(c.Limits)
	}
	if limits < 30 {
		t.Errorf("%d limits", limits)
	}
}

func TestShapesAreTheSameEachTime(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			edges := s.edges(400, newRandom(1))
			again := s.edges(400, newRandom(1))
			if !slices.Equal(edges, again) || len(edges) == 0 {
				t.Errorf("%d edges, then %d others", len(edges), len(again))
			}
		})
	}
}
