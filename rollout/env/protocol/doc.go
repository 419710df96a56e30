// Package protocol is how environments that come as packages are spoken to, whatever runs them: lines of JSON.
//
// The environment reads requests from standard input and answers each with one line on standard output, both JSON in
// UTF-8, of at most MaxLine bytes. One instance plays one episode; it gets requests in this order:
//
//	{"op":"reset","split":"train","index":7,"task":…}     first; task is there if the package lists the split's tasks
//	  {"messages":[{"role":"user","content":"…"}],"tools":[{"name":"…","description":"…","parameters":{…}}]}
//	{"op":"call","name":"…","arguments":"…"}              any number; arguments are the text that the policy wrote
//	  {"result":"…"}
//	{"op":"score","answer":"…"}                           once, and last
//	  {"reward":1,"components":{"name":0.5}}
//	{"op":"solve"}                                        after reset, in checks and a policy's warm start, never in a rollout
//	  {"calls":[{"name":"…","arguments":"…"}],"answer":"…","habits":["…"]}
//	{"op":"solve","habit":"…"}                            for each habit that the answer above names, if any
//	  {"calls":[{"name":"…","arguments":"…"}],"answer":"…"}
//	{"op":"reply","role":"…","messages":[…],"tools":["…"]}  any number after reset, in a policy's warm start by an agent program
//	  {"content":"…","calls":[{"name":"…","arguments":"…"}]}
//
// The messages of reply are those of a call that the agent makes in a role, each of them
//
//	{"role":"system|user|assistant|tool","content":"…","calls":[{"name":"…","arguments":"…"}]}
//
// and tools are the names of those that it offers. The answer is what an ideal model would say or, where the request has a
// habit too, one with that habit; calls may be left out. An environment that answers reply may answer solve with habits
// alone.
//
// Any request may be answered with {"error":"…"}: the environment itself failed. Fields that are not named here are
// errors. An environment reads the next request only after it has answered, and may end when its input does. Its standard
// error is for its author: the end of it is in errors.
//
// Begin starts an Episode on a Port, which is what a driver provides. Whatever an environment does wrong is a *Failure.
package protocol
