package engine

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// debianEngine returns an engine with the package graph of Debian and the names
// of its packages.
func debianEngine(tb testing.TB) (*Engine, []string) {
	tb.Helper()
	source, err := os.ReadFile("../examples/debian/debian.heddle")
	if err != nil {
		tb.Fatal(err)
	}
	file, err := parse.Program(string(source))
	if err != nil {
		tb.Fatal(err)
	}
	program, err := analysis.Analyse(file, string(source))
	if err != nil {
		tb.Fatal(err)
	}
	e := New(nil)
	if _, err := e.Deploy(program, false); err != nil {
		tb.Fatal(err)
	}
	var packages []string
	for i := range program.Relations {
		r := &program.Relations[i]
		if r.Derived {
			continue
		}
		ops := debianRows(tb, r)
		if _, _, err := e.Apply(1, ops); err != nil {
			tb.Fatal(err)
		}
		if r.Name == "packages" {
			for _, op := range ops {
				packages = append(packages, op.Row[0].Str())
			}
		}
	}
	return e, packages
}

func debianRows(tb testing.TB, r *analysis.Relation) []analysis.Op {
	tb.Helper()
	file, err := os.Open(filepath.Join("../testdata/debian", r.Name+".csv.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	records, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	ops := make([]analysis.Op, 0, len(records))
	for _, record := range records[1:] {
		row := make([]value.Value, len(record))
		for c, field := range record {
			if r.Columns[c].Type == value.Int {
				n, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					tb.Fatal(err)
				}
				row[c] = value.OfInt(n)
				continue
			}
			row[c] = value.OfString(field)
		}
		ops = append(ops, analysis.Op{Relation: r.Name, Row: row})
	}
	return ops
}

// BenchmarkDebian watches a package of Debian and lets it go again, with and
// without other keys around: the two ought to cost about the same.
func BenchmarkDebian(b *testing.B) {
	e, packages := debianEngine(b)
	for _, view := range []string{"deps", "users", "clashes", "everything"} {
		for _, others := range []int{0, 200} {
			b.Run("view="+view+"/others="+strconv.Itoa(others), func(b *testing.B) {
				var kept []*Key
				for i := range others {
					name := packages[i*len(packages)/others]
					kept = append(kept, watch(b, e, "deps", name), watch(b, e, view, name))
				}
				var watching, unwatching time.Duration
				i := 0
				for b.Loop() {
					began := time.Now()
					k := watch(b, e, view, packages[i*7919%len(packages)])
					watched := time.Now()
					e.Unwatch(k)
					unwatching += time.Since(watched)
					watching += watched.Sub(began)
					i++
				}
				b.ReportMetric(float64(watching.Nanoseconds())/float64(b.N)/1000, "watch-us/op")
				b.ReportMetric(float64(unwatching.Nanoseconds())/float64(b.N)/1000, "unwatch-us/op")
				for _, k := range kept {
					e.Unwatch(k)
				}
			})
		}
	}
	if n := e.Stats().DerivedRows; n != 0 {
		b.Errorf("%d derived rows are left without watched keys", n)
	}
}
