package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadEvents(t *testing.T) {
	const events = `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"run","Package":"p","Test":"TestA/y"}
{"Action":"output","Package":"p","Test":"TestA/y","Output":"because\n"}
{"Action":"fail","Package":"p","Test":"TestA/y"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: wrong\n"}
{"Action":"build-fail","ImportPath":"q"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
`
	var out strings.Builder
	got := readEvents(strings.NewReader(strings.TrimSpace(events)), &out)
	want := []result{{"pass", "p TestA/x"}, {"fail", "p TestA/y"}, {"skip", "p TestB"}, {"fail", "q"}}
	if !slices.Equal(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
	if want := "because\nq.go:1: wrong\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestTotalCountsATestOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	for _, results := range [][]result{
		{{"pass", "p TestA"}, {"pass", "p TestB"}, {"skip", "p TestC"}, {"skip", "p TestD"}},
		{{"pass", "p TestA"}, {"fail", "p TestB"}, {"pass", "p TestC"}},
	} {
		if err := appendResults(path, results); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := printTotal(path, &out); err != nil {
		t.Fatal(err)
	}
	if want := "2 passed, 1 failed, 1 skipped\n"; out.String() != want {
		t.Errorf("total %q, want %q", out.String(), want)
	}
	if err := printTotal(path+"-none", io.Discard); err == nil {
		t.Error("no error for a missing file")
	}
}
