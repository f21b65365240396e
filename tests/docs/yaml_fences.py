"""What is done with YAML on a page: objects are applied by the server (dry run), configurations are given to the role that reads them."""
import json
import os
import re

import yaml

# By apiVersion (its group) and kind: the command that says whether it is good.
CONFIGURATIONS = [
    (r"berth/", "", "berth server --validate --config {}"),
    (r"kubescheduler\.config\.k8s\.io/", "", "berth scheduler --validate --config {}"),
    (r"v1$", "Policy", "berth scheduler --validate --policy-config-file {}"),
    (r"descheduler/", "", "berth descheduler --validate --policy-config-file {}"),
    (r"kubelet\.config\.k8s\.io/", "", "berth node --validate --config {}"),
    (r"audit\.k8s\.io/", "", "berth server --validate --audit-policy-file {}"),
    (r"apiserver\.(config\.)?k8s\.io/", "TracingConfiguration", "berth server --validate --tracing-config-file {}"),
    (r"apiserver\.(config\.)?k8s\.io/", "EncryptionConfiguration", "berth server --validate --encryption-provider-config {}"),
    (r"apiserver\.(config\.)?k8s\.io/", "AuthenticationConfiguration", "berth server --validate --authentication-config {}"),
    (r"apiserver\.(config\.)?k8s\.io/", "AuthorizationConfiguration", "berth server --validate --authorization-config {}"),
    (r"apiserver\.(config\.)?k8s\.io/", "AdmissionConfiguration", "berth server --validate --admission-control-config-file {}"),
]
BY_MARK = {"scenario": "berth simulate --validate {}", "question": "berth what-if --file {} >/dev/null", "rules": "berth webhook --validate --rules {}"}


def parse_part(check, fence):
    try:
        text = "\n".join(fence.lines).replace("…", "etc")
        if fence.language == "yaml":
            list(yaml.safe_load_all(text))
        check.ok()
    except yaml.YAMLError as error:
        check.bad(fence.line, f"no YAML: {error}")


def judge(document, marks):
    for mark, command in BY_MARK.items():
        if mark in marks:
            return command
    version, kind = document.get("apiVersion", ""), document.get("kind", "")
    for group, of_kind, command in CONFIGURATIONS:
        if re.match(group, version) and of_kind in ("", kind):
            return command
    return "kubectl apply --dry-run=server -f {}" if version and kind else None


def check(page, fence):
    text = "\n".join(fence.lines) + "\n"
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        return page.bad(fence.line, f"no YAML: {error}")
    command = judge(documents[0] if documents and isinstance(documents[0], dict) else {}, fence.marks)
    if command is None:
        return page.bad(fence.line, "neither an object nor a configuration: say `yaml part`, or what it is")
    path = os.path.join(page.folder, "clone", ".steps", f"line-{fence.line}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    code, printed = page.session.run(command.format(path), 60)
    page.ok() if code == 0 else page.bad(fence.line, f"refused: {command.format(json.dumps(path))}", printed)
