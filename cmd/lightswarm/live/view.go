package live

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
)

// lineInterval is the longest silence of a plain log.
const lineInterval = 5 * time.Second

// View shows States until it is closed. It is safe for concurrent use.
type View struct {
	update func(State)
	stop   func()
	once   sync.Once
}

// Open starts a view on out. When out is a terminal that can be drawn on it draws a screen, and cancel is called when the
// person presses q or ctrl-c; once more leaves the screen, so that signals reach the program again. Otherwise, and where
// there is no keyboard to read, it writes plain lines. It shows until the caller closes it, whatever becomes of ctx.
func Open(ctx context.Context, out *os.File, plain bool, cancel context.CancelFunc) *View {
	log := &lines{out: out}
	if plain || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return &View{update: log.update, stop: func() {}}
	}
	program := tea.NewProgram(screen{cancel: cancel},
		tea.WithContext(context.WithoutCancel(ctx)), tea.WithOutput(out), tea.WithoutSignalHandler())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := program.Run(); err != nil {
			fmt.Fprintln(out, "lightswarm: there is no live view, only lines:", err)
		}
	}()
	return &View{
		update: func(s State) {
			select {
			case <-done:
				log.update(s)
			default:
				program.Send(s)
			}
		},
		stop: func() {
			program.Send(closed{})
			<-done
		},
	}
}

// Update shows s.
func (v *View) Update(s State) { v.update(s) }

// Close leaves the last screen in place and waits for the terminal to be restored.
func (v *View) Close() { v.once.Do(v.stop) }

// screen is the terminal program: the newest state and the window it is drawn in.
type screen struct {
	state         State
	width, height int
	stopping      bool
	closed        bool
	cancel        context.CancelFunc
}

// closed is sent to the program to draw its last screen, which asks for no key, and end.
type closed struct{}

// Init implements tea.Model.
func (screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case State:
		m.state = msg
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case closed:
		m.closed = true
		return m, tea.Quit
	case tea.KeyPressMsg:
		if k := msg.String(); k != "q" && k != "ctrl+c" {
			return m, nil
		}
		if m.stopping {
			m.closed = true
			return m, tea.Quit
		}
		m.stopping = true
		m.cancel()
	}
	return m, nil
}

// View implements tea.Model.
func (m screen) View() tea.View {
	if m.width == 0 {
		return tea.NewView("")
	}
	hint := "q stops"
	switch {
	case m.closed:
		hint = ""
	case m.stopping:
		hint = "stopping; q leaves this screen"
	}
	// The last line, which is empty, is where the result is written.
	return tea.NewView(Render(m.state, m.width, m.height-2) + quietStyle.Render(hint) + "\n")
}

// lines is the plain log: a line for each evaluation, and one after every lineInterval of silence.
type lines struct {
	mu          sync.Mutex
	out         io.Writer
	evaluations int
	last        time.Duration
}

func (l *lines) update(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(s.Evaluations) == l.evaluations && s.Elapsed-l.last < lineInterval {
		return
	}
	l.evaluations, l.last = len(s.Evaluations), s.Elapsed
	fmt.Fprintln(l.out, Line(s))
}
