"""An agent whose instrumentation exports its spans by OTLP, as its environment says, when it has ended its work."""

import gzip
import json
import os
import time
import urllib.request

NOW = time.time_ns()


def post(url, body, headers):
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def call(content):
    """Asks the policy, and returns the id of its answer."""
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": content}]}).encode()
    answer = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return answer["id"]


def span(number, parent, name, status=0, **attributes):
    return {
        "traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"{number:016x}", "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name, "startTimeUnixNano": str(NOW + 10 * number), "endTimeUnixNano": str(NOW + 10 * number + 5), "status": {"code": status},
        "attributes": [{"key": key.replace("__", "."), "value": {"doubleValue" if isinstance(value, float) else "stringValue": value}}
                       for key, value in attributes.items()],
    }


def export(spans):
    assert os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf" and os.environ["OTEL_EXPORTER_OTLP_COMPRESSION"] == "gzip"
    headers = dict(pair.split("=", 1) for pair in os.environ["OTEL_EXPORTER_OTLP_HEADERS"].split(","))
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    answer = post(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces", gzip.compress(body), {"Content-Encoding": "gzip", **headers})
    assert answer == {}, answer


first, second = call("a"), call("b")
export([
    span(1, 0, "agent", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="critic"),
    span(2, 1, "chat", gen_ai__operation__name="chat", gen_ai__response__id=first),
    span(3, 1, "execute_tool search", 2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="search"),
    span(4, 0, "chat", gen_ai__operation__name="chat", gen_ai__response__id=second),
    span(5, 0, "agentlightning.annotation", agentlightning__reward__0__value=0.5),
])
print("done")
