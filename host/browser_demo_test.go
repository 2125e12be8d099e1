//go:build browser

package host_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// demo is `heddle demo`, the binary that users run, in a process of its own.
type demo struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	temp   string        // where it has its temporary directory
	stderr bytes.Buffer  // to be read once ended is closed
	ended  chan struct{} // closed when it is gone and err is set
	err    error
}

var demoAddress = regexp.MustCompile(`^Heddle demo: (http://127\.0\.0\.1:\d+/)$`)

// startDemo builds the binary, starts it, and waits until it says how to end it.
func startDemo(t *testing.T) *demo {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "heddle")
	if said, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("build heddle: %v\n%s", err, said)
	}
	d := &demo{t: t, temp: t.TempDir(), ended: make(chan struct{})}
	d.cmd = exec.Command(binary, "demo")
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.temp)
	d.cmd.Stderr = &d.stderr
	stdout, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan string, 1)
	go d.follow(stdout, began)
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it may have ended by itself
		<-d.ended
	})
	select {
	case d.url = <-began:
	case <-d.ended:
	case <-time.After(processPatience):
	}
	if d.url == "" {
		_ = d.cmd.Process.Kill()
		<-d.ended
		t.Fatalf("the demo did not begin: %v\n%s", d.err, d.stderr.String())
	}
	return d
}

func (d *demo) follow(stdout io.Reader, began chan<- string) {
	lines := bufio.NewScanner(stdout)
	var address string
	for lines.Scan() {
		if m := demoAddress.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
		if lines.Text() == "Press Ctrl-C to end it." {
			began <- address // has room for one
		}
	}
	d.err = d.cmd.Wait()
	close(d.ended)
}

// interrupt ends the demo as Ctrl-C does and expects that nothing is left.
func (d *demo) interrupt() {
	d.t.Helper()
	began := time.Now()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.ended:
	case <-time.After(processPatience):
		d.t.Fatalf("the demo did not end within %v", processPatience)
	}
	if d.err != nil || d.stderr.Len() > 0 {
		d.t.Errorf("the demo ended with %v and said %q", d.err, d.stderr.String())
	}
	if left := d.files(); len(left) > 0 {
		d.t.Errorf("the demo left %v", left)
	}
	d.t.Logf("ended %v after Ctrl-C", time.Since(began).Round(time.Millisecond))
}

// files lists what the demo has among the temporary files.
func (d *demo) files() []string {
	d.t.Helper()
	names, err := filepath.Glob(filepath.Join(d.temp, "*"))
	if err != nil {
		d.t.Fatal(err)
	}
	return names
}

// cards is an expression: that so many cards are on the page, all live, and the
// condition holds for each card c.
func cards(n int, condition string) string {
	return fmt.Sprintf(`((all) => all.length === %d && all.every((c) =>
		c.dataset.status === "live" && (%s)))([...document.querySelectorAll("#cards .card")])`,
		n, condition)
}

// openDemo opens the demo's page and waits until its twelve cards show rows,
// revision and transport.
func openDemo(t *testing.T, browser *chromium, url, transport string) *page {
	t.Helper()
	began := time.Now()
	p := browser.open(t, url)
	p.width(1280)
	p.until("%s", cards(12, `c.querySelector(".row")`))
	took := time.Since(began)
	p.until("%s", cards(12, fmt.Sprintf(`c.querySelector(".via").textContent === %q &&
		/^rev [0-9,]+$/.test(c.querySelector(".rev").textContent)`, transport)))
	t.Logf("twelve cards with rows over %s after %v", transport, took.Round(time.Millisecond))
	return p
}

func TestBrowserDemo(t *testing.T) {
	d, browser := startDemo(t), startChromium(t)
	if made := d.files(); len(made) != 1 {
		t.Errorf("the demo's temporary files: %v", made)
	}
	first := openDemo(t, browser, d.url, "WebTransport")
	second := openDemo(t, browser, d.url+"?transport=websocket", "WebSocket")
	first.screenshot("demo-1280")

	// The demo's writer moves rows on every card, and they are seen to move.
	var frames map[string]int
	first.get(&frames, `Object.fromEntries([...document.querySelectorAll(".card")].map(
		(c) => [c.dataset.key, Number(c.dataset.frames)]))`)
	for key, n := range frames {
		first.until(`document.querySelector('.card[data-key="%s"]').dataset.frames > %d`, key, n)
	}
	first.until(`document.querySelector(".row.entering") && document.querySelector(".row.leaving")`)
	first.until(`document.getElementById("watched").textContent === "12" &&
		document.getElementById("viewers").textContent === "24"`)
	first.until(`Number(document.getElementById("writes").textContent) > 0 &&
		/^[0-9,]+ µs$/.test(document.getElementById("cpu").textContent)`)

	viewerAndFact(first, second)

	// Another transport, without a reload and without an end of the changes.
	var newest int
	first.get(&newest, `Math.max(...[...document.querySelectorAll(".card")].map(
		(c) => c.dataset.revision))`)
	first.get(nil, `(() => {
		const select = document.getElementById("transport");
		select.value = "websocket";
		select.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
	first.until("%s", cards(13, `c.querySelector(".via").textContent === "WebSocket" &&
		(c.dataset.key === "99" || c.dataset.revision > `+fmt.Sprint(newest)+`)`))

	narrow(t, first, 13)
	narrow(t, openDemo(t, browser, d.url, "WebTransport"), 12)
	first.quiet()
	second.quiet()
	d.interrupt()
	first.until(`document.getElementById("state").dataset.status === "connecting"`)
}

// viewerAndFact adds a viewer for a key that has no rows to both pages, then
// inserts and deletes its first fact by the form of one: both cards must follow.
func viewerAndFact(first, second *page) {
	first.t.Helper()
	const card = `document.querySelector('.card[data-key="99"]')`
	for _, p := range []*page{first, second} {
		p.typeInto("#add-key", "99")
		p.click("#add button")
		p.until(`%s.dataset.status === "live" && %[1]s.dataset.rows === "0"`, card)
	}
	first.typeInto("#columns label:nth-child(1) input", "99")
	first.typeInto("#columns label:nth-child(2) input", "5") // the parcel for 47 Market Place
	first.click("#write button[value=insert]")
	for _, p := range []*page{first, second} {
		p.until(`%s.dataset.rows === "1" && /47 Market Place/.test(%[1]s.textContent)`, card)
	}
	first.until(`/Durable at revision/.test(document.getElementById("write-note").textContent)`)
	first.click("#write button[value=delete]")
	for _, p := range []*page{first, second} {
		p.until(`%s.dataset.rows === "0" && !%[1]s.querySelector(".row")`, card)
	}
}

// longError asks what cannot be read: all of the answer must be on the page.
func longError(p *page) {
	p.t.Helper()
	p.typeInto("#ask-query", "?holds("+strings.Repeat("SomeVariable, ", 20)+"X")
	p.click("#ask button")
	p.until(`((note) => /never closed/.test(note.textContent) &&
		note.scrollWidth <= note.clientWidth)(document.getElementById("ask-note"))`)
}

// TestBrowserDemoKeepsItsKeys closes all cards and adds one: both must be so
// after a reload.
func TestBrowserDemoKeepsItsKeys(t *testing.T) {
	d, browser := startDemo(t), startChromium(t)
	p := openDemo(t, browser, d.url, "WebTransport")
	p.get(nil, `document.querySelectorAll("#cards .close").forEach((b) => b.click())`)
	p.until(`!document.getElementById("none").hidden &&
		document.getElementById("none").offsetHeight > 0`)
	p.width(390)
	p.until("innerWidth === 390")
	p.screenshot("demo-none")
	p.command("Page.reload", nil)
	p.until(`!document.getElementById("none").hidden && %s`, cards(0, "true"))
	p.typeInto("#add-key", "77")
	p.click("#add button")
	p.until("%s", cards(1, `c.dataset.key === "77"`))
	p.command("Page.reload", nil)
	p.until(`document.getElementById("none").hidden && %s`, cards(1, `c.dataset.key === "77"`))
	p.get(nil, `document.querySelector("#cards .close").click()`)
	p.click("#again")
	p.until("%s && location.search === ''", cards(12, "true"))
	p.quiet()
	longError(p) // the browser notes the refusal in its console
	d.interrupt()
}

// narrow gives a page the width of a phone: it must not scroll sideways.
func narrow(t *testing.T, p *page, n int) {
	t.Helper()
	p.width(390)
	p.until("innerWidth === 390")
	var width int
	p.get(&width, "document.documentElement.scrollWidth")
	if width > 390 {
		t.Errorf("the page is %d pixels wide on a screen of 390", width)
	}
	p.until("%s", cards(n, `c.getBoundingClientRect().left >= 0 &&
		c.getBoundingClientRect().right <= 390 && c.offsetHeight > 0`))
	p.screenshot(fmt.Sprintf("demo-390-%d", n))
	p.quiet()
}
