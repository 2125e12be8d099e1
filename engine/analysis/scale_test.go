package analysis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/parse"
)

// BenchmarkAnalyse measures the largest programs that the limits allow: what is
// slow here would stop a graph's loop.
func BenchmarkAnalyse(b *testing.B) {
	for _, c := range []struct{ name, src string }{
		{"chain backwards", chainBackwards(parse.StatementsMax - 1)},
		{"many faults", strings.Repeat("r(X) <- nothing(X)\n", parse.StatementsMax)},
		{"one column at a time", "+e(a: int)\n" + slowTypes(parse.ColumnsMax)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = analyse(c.src)
			}
			b.ReportMetric(float64(len(c.src))/1024, "KiB")
		})
	}
}

// chainBackwards is a program whose types come from its last line.
func chainBackwards(n int) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "r%d(X, Y) <- r%d(Y, X)\n", i, i+1)
	}
	fmt.Fprintf(&b, "r%d(X, Y) <- e(X, Y)\n+e(a: int, b: string)", n-1)
	return b.String()
}

// slowTypes is a relation that learns the type of one column from the one
// before, and many rules that read it.
func slowTypes(columns int) string {
	names := make([]string, columns)
	for i := range names {
		names[i] = fmt.Sprintf("X%d", i)
	}
	all := strings.Join(names, ", ")
	shifted := strings.Join(append([]string{"Y"}, names[:columns-1]...), ", ")
	var b strings.Builder
	fmt.Fprintf(&b, "s(%s) <- s(%s), e(Y)\n", shifted, all)
	for b.Len() < parse.SourceBytesMax-5000 {
		fmt.Fprintf(&b, "t(%s) <- s(%s), s(%s), s(%s)\n", all, all, all, shifted)
	}
	return b.String()
}
