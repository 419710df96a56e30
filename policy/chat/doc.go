// Package chat turns conversations into a policy's prompts and a policy's completions into messages.
//
// Token ids are the truth and text is a view. A prompt is made of the ids that earlier completions were sampled as
// (Message.Tokens), never of their text encoded again, so that
//
//	Render(history + the parsed completion + …) starts with Render(history) + completion
//
// holds exactly for every completion. Without Tokens it holds for the completions that RenderCompletion would make.
//
// The marks of the template are special tokens, which encoding text never yields: nothing that a user, a tool or an
// environment writes can open a turn, end one or call a tool.
//
// # Template lightswarm-1
//
// Written for small policies, where every token of a prompt costs: marks are one token each and closing marks are
// left out where the next opening one does their work. "text" is encoded plainly.
//
//	prompt     = { "<|tools|>" tool } { message } "<|assistant|>"
//	tool       = text: name, parameters and, after a space, the description
//	message    = "<|system|>" text
//	           | "<|user|>" text
//	           | "<|assistant|>" completion
//	           | "<|tool|>" [ text "<|args|>" ] text
//	completion = text { "<|call|>" text "<|args|>" text } "<|end|>"
//
// A call is a tool's name and its arguments, exactly as the policy writes them. A tool message answers the calls of
// the assistant message before it; when it does not answer the first one still open, the index of the call it
// answers comes before "<|args|>". Ids of calls never enter a prompt.
//
// A tool's parameters are written as "(city,days:integer,unit?)" when its JSON schema says no more than that: an
// object of scalars, where a type that is left out is string and ? marks what is not required. Otherwise they are
// the schema itself, without its white space.
package chat
