package parse

import (
	"strings"
	"testing"
)

func BenchmarkTransaction(b *testing.B) {
	for _, c := range []struct {
		name, src string
		facts     int
	}{
		{"facts=1", `+edge(1234, "a string")`, 1},
		{"facts=1e5", "+e[" + strings.Repeat("(1234,5),", 100_000) + "]", 100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Transaction(c.src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(c.facts)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}
