package chat

// Role says who speaks in a Message.
type Role string

// The roles of a conversation.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one turn of a conversation.
type Message struct {
	Role    Role
	Content string
	// ToolCalls are the tools that an assistant message asks for, in order.
	ToolCalls []ToolCall
	// ToolCallID says which call a tool message answers: one of the assistant message before it. Empty means the
	// first that has no answer yet.
	ToolCallID string
	// Tokens are the exact ids of the completion that an assistant message was parsed from, its end included.
	// Render uses them as they are and ignores the other fields. Nil when the message did not come from a policy.
	Tokens []int32
}

// ToolCall is an assistant's request to run one tool.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the text that the policy wrote, normally a JSON object; it is never re-serialised.
	Arguments string
}

// Tool tells the policy of one tool that it may call.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON schema, as text. Empty means that the tool takes none.
	Parameters string
}

// MaxToolName bounds a tool's name, in bytes.
const MaxToolName = 64

// ValidToolName reports whether name is 1 to MaxToolName ASCII letters, digits, underscores and hyphens.
func ValidToolName(name string) bool {
	if name == "" || len(name) > MaxToolName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if (c < '0' || c > '9') && c != '_' && c != '-' {
				return false
			}
		}
	}
	return true
}
