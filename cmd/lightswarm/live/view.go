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

// Open starts a view on out. When out is a terminal it draws a screen and cancel is called if the person presses q or
// ctrl-c; otherwise it writes plain lines. The caller closes it.
func Open(ctx context.Context, out *os.File, plain bool, cancel context.CancelFunc) *View {
	if plain || !term.IsTerminal(int(out.Fd())) {
		log := &lines{out: out}
		return &View{update: log.update, stop: func() {}}
	}
	program := tea.NewProgram(screen{cancel: cancel}, tea.WithContext(ctx), tea.WithOutput(out), tea.WithoutSignalHandler())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := program.Run(); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "lightswarm: the live view stopped:", err)
		}
	}()
	return &View{
		update: func(s State) { program.Send(s) },
		stop: func() {
			program.Quit()
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
	state  State
	width  int
	cancel context.CancelFunc
}

// Init implements tea.Model.
func (screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case State:
		m.state = msg
	case tea.WindowSizeMsg:
		m.width = msg.Width
	case tea.KeyPressMsg:
		if k := msg.String(); k == "q" || k == "ctrl+c" {
			m.state.Phase = "stopping"
			m.cancel()
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m screen) View() tea.View {
	if m.width == 0 {
		return tea.NewView("")
	}
	return tea.NewView(Render(m.state, m.width) + quietStyle.Render("q stops") + "\n")
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
