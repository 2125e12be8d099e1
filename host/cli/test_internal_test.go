package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files into a directory that becomes the present one.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	shopProgram = "+edge(src: int, dst: int)\nview out($src: int) := ?edge($src, Y)\n"
	goodTest    = "test one\nwrite +edge(1, 2)\nexpect rows out(1)\n  (1, 2)\ntest another\n"
	badTest     = "test none\nwrite +edge(1, 2)\nexpect no rows out(1)\n"
)

func TestTest(t *testing.T) {
	tree(t, map[string]string{
		"shop.heddle": shopProgram, "tests/good.test": goodTest, "tests/notes.txt": "no test",
		"tests/more/bad.test": badTest, "wrong.heddle": "+edge(src: in)\n",
		"wrong.test": "test x\nwrite +egde(1, 2)\n", "empty/x": "",
	})
	good, bad := filepath.Join("tests", "good.test"), filepath.Join("tests", "more", "bad.test")
	run(t, "", "test", "shop.heddle", good).want(t, "2 tests in 1 file passed\n")
	run(t, "", "test", "shop.heddle", "--run", "another").want(t, "1 test in 2 files passed\n")
	run(t, "", "test", "shop.heddle", good, "-v", "--run", "one").want(t,
		good+"\n  ok    one\n1 test in 1 file passed\n")
	failed := bad + "\n  FAIL  none\n    line 3: expect no rows out(1)\n      unexpected  (1, 2)\n"
	for _, args := range [][]string{{}, {"tests"}, {"tests", good}} {
		r := run(t, "", append([]string{"test", "shop.heddle"}, args...)...)
		r.wantError(t, ExitRefused, "1 of 3 tests failed")
		if r.out != failed {
			t.Errorf("%v: got\n%s", args, r.out)
		}
	}
	r := run(t, "", "test", "shop.heddle", "--json")
	r.wantError(t, ExitRefused, `"detail":"1 of 3 tests failed"`)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var last tested
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 3 ||
		last.File != bad || last.Test != "none" || last.Passed || len(last.Failures) != 1 ||
		last.Failures[0] != (testedFailure{3, "expect no rows out(1)", "unexpected  (1, 2)"}) {
		t.Errorf("%v %+v\n%s", err, last, r.out)
	}
	run(t, "", "test").wantError(t, ExitUsage, "takes FILE [TESTS...]")
	run(t, "", "test", "--nope").wantError(t, ExitUsage, "--nope")
	run(t, "", "test", "nothing.heddle").wantError(t, ExitUsage, "nothing.heddle")
	run(t, "", "test", "shop.heddle", "nothing").wantError(t, ExitUsage, "nothing", ".test")
	run(t, "", "test", "shop.heddle", "empty").wantError(t, ExitUsage, "empty has no file")
	run(t, "", "test", "shop.heddle", "--run", "zzz").wantError(t, ExitUsage, `"zzz"`)
	run(t, "", "test", "wrong.heddle").wantError(t, ExitUsage, "wrong.heddle, line 1, column 12", "^^")
	run(t, "", "test", "shop.heddle", "wrong.test").wantError(t, ExitUsage,
		"wrong.test, line 2, column 8: there is no relation egde", "did you mean edge?")
}

// The scenarios of every example pass.
func TestExamples(t *testing.T) {
	programs, err := filepath.Glob("../../examples/*/*.heddle")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(filepath.Dir(program), "tests")); err != nil {
			continue
		}
		tested++
		if r := run(t, "", "test", program); r.err != nil {
			t.Errorf("%s\n%s%v", program, r.out, r.err)
		}
	}
	if tested == 0 {
		t.Error("no example has tests")
	}
}
