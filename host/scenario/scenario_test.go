package scenario

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
)

// limits are small, so that tests reach them.
var limits = Limits{
	QuerySteps: 10_000, WatchSteps: 10_000, Derived: engine.Limits{CommitRows: 10_000},
}

var update = flag.Bool("update", false, "rewrite what the files of testdata should print")

// TestFiles plays the files of testdata. Each has a program, scenarios and what comes
// of them, between lines of dashes.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 2 {
		t.Fatal("no files: ", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(string(text), "----\n")
			if len(parts) != 3 {
				t.Fatalf("%d parts", len(parts))
			}
			got := play(t, parts[0], parts[1])
			if *update {
				whole := parts[0] + "----\n" + parts[1] + "----\n" + got
				if err := os.WriteFile(name, []byte(whole), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != parts[2] {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func checkedProgram(t testing.TB, source string) *analysis.Program {
	t.Helper()
	tree, err := parse.Program(source)
	if err != nil {
		t.Fatal(err)
	}
	program, err := analysis.Analyse(tree, source)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// play returns what comes of scenarios, or how the file is wrong.
func play(t *testing.T, program, source string) string {
	f, err := Read(checkedProgram(t, program), source)
	if err != nil {
		return err.(parse.Errors).Detail() + "\n"
	}
	var b strings.Builder
	for i := range f.Tests {
		result := f.Tests[i].Run(limits)
		if again := f.Tests[i].Run(limits); fmt.Sprint(again) != fmt.Sprint(result) {
			t.Errorf("test %s goes otherwise when it is run again", f.Tests[i].Name)
		}
		if result.Failures == nil {
			fmt.Fprintf(&b, "ok    %s\n", f.Tests[i].Name)
			continue
		}
		fmt.Fprintf(&b, "FAIL  %s\n", f.Tests[i].Name)
		for _, failure := range result.Failures {
			fmt.Fprintf(&b, "  line %d: %s\n    %s\n", failure.Line, failure.Step,
				strings.ReplaceAll(failure.Text, "\n", "\n    "))
		}
	}
	return b.String()
}

// Lines may end as on Windows.
func TestLineEnds(t *testing.T) {
	text, err := os.ReadFile("testdata/passes.txt")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "----\n")
	if got := play(t, parts[0], strings.ReplaceAll(parts[1], "\n", "\r\n")); got != parts[2] {
		t.Errorf("got\n%s", got)
	}
}

// What the language's own errors say is the language's: here is where they are.
func TestPlaces(t *testing.T) {
	_, err := Read(checkedProgram(t, `+task(id: int, owner: string)
+when(id: int, at: timestamp)
view mine($owner: string) := ?task(Id, $owner)
action claim($id: int, $owner: string) := +task($id, $owner) <- !task($id, _)
clock every 10s
`), `test one
write +egde(1, 2)
given
    // a comment
    +task(1, "ann")
    +task("1", "ann")
given +task[(1, "ann"),
    ("1", "ann")]
call claim(1)
call claim("ann", 1)
watch mine (7)
expect rows mine("ann")
  (1)
  (1,
    ann)
  (X, "ann")
expect no rows ?tsk(1, Y)
expect rows ?when(Id, At)
  (1, "noon")
clock "noon"
write +task(1, "ann")
expect refused moon
`)
	var places []parse.Position
	for _, e := range err.(parse.Errors) {
		places = append(places, e.Position)
	}
	const want = "[{2 8} {6 11} {8 6} {9 12} {10 12} {10 19} {11 13} {13 4} {15 5} {16 4} {17 17} {19 7} {20 7} {22 16}]"
	if fmt.Sprint(places) != want {
		t.Errorf("%v\n%v", places, err.(parse.Errors).Detail())
	}
}

// What a refusal says is the engine's: here is only what a test makes of it.
func TestRefusals(t *testing.T) {
	const tooMuch = `write
  +n(A) <- n(A), n(B), n(C), n(D), n(E), A + B + C > D + E
`
	file, err := Read(checkedProgram(t, "+n(x: int)\n"), `
given +n[(0), (1), (2), (3), (4), (5), (6)]
test nothing is said of it
`+tooMuch+`expect no rows ?n(1)
test another reason
`+tooMuch+`expect refused "moon phase"
test the reason
`+tooMuch+`expect refused "statement 1"
test any reason
`+tooMuch+`expect refused
`)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"it was refused: statement 1: ", "it was refused for another reason: statement 1: ", "", "",
	} {
		result := file.Tests[i].Run(limits)
		switch {
		case want == "" && result.Failures == nil:
		case len(result.Failures) == 1 && want != "" &&
			strings.HasPrefix(result.Failures[0].Text, want):
		default:
			t.Errorf("test %s: %+v", file.Tests[i].Name, result.Failures)
		}
	}
}

func TestLimits(t *testing.T) {
	program := checkedProgram(t, "+a(x: int)\n")
	for _, c := range []struct{ name, source, want string }{
		{"tests", strings.Repeat("test x\n", testsMax+1), "more than 1000 tests"},
		{"bytes", strings.Repeat("//\n", sourceBytesMax/3+1), "more than the 1048576 allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Read(program, c.source); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// No text makes Read or Run panic.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.Split(string(text), "----\n")[1])
	}
	program := checkedProgram(f, `+task(id: int, owner: string)
+free(id: int)
open(X) <- task(X, _)
view mine($owner: string) := ?task(Id, $owner)
view page($id: int) := tasks: ?task($id, Owner), open: ?open($id)
action claim($id: int, $owner: string) := +task($id, $owner), -free($id) <- free($id)
clock every 10s
`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read(program, text)
		if err != nil {
			return
		}
		for i := range file.Tests {
			file.Tests[i].Run(limits)
		}
	})
}
