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
	// ToolCallID says which call a tool message answers.
	ToolCallID string
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
	// Parameters is a JSON schema, as text.
	Parameters string
}
