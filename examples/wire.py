"""Protocol buffers by hand, as far as the drivers beside this need them: messages without generated code."""
import grpc


def varint(number):
    out = b""
    number &= (1 << 64) - 1
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def message(**values):
    """message(f1="text", f2={"a": "b"}, f3=[b"nested", …], f4=7): fields by number; what is empty is left out."""
    out = b""
    for name, value in values.items():
        number = int(name[1:])
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                out += b"".join(message(**{name: message(f1=key, f2=text)}) for key, text in one.items())
            elif isinstance(one, (bool, int)):
                out += varint(number << 3) + varint(one) if one else b""
            elif one or isinstance(value, list) or isinstance(one, bytes):
                data = one.encode() if isinstance(one, str) else one
                out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


class Fields:
    """A message that came."""

    def __init__(self, data):
        self.values, at = {}, 0

        def number():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
                if byte < 0x80:
                    return value

        while at < len(data):
            tag = number()
            if tag & 7 == 2:
                size = number()
                self.values.setdefault(tag >> 3, []).append(data[at:at + size])
                at += size
            else:
                self.values.setdefault(tag >> 3, []).append(number())

    def has(self, number):
        return number in self.values

    def text(self, number):
        return self.values.get(number, [b""])[-1].decode()

    def texts(self, number):
        return [one.decode() for one in self.values.get(number, [])]

    def int(self, number):
        return self.values.get(number, [0])[-1]

    def all(self, number):
        return [Fields(one) for one in self.values.get(number, [])]

    def one(self, number):
        return Fields(self.values.get(number, [b""])[-1])

    def map(self, number):
        return {entry.text(1): entry.text(2) for entry in self.all(number)}


class Refused(Exception):
    """An answer that is an error: a grpc.StatusCode and why."""

    def __init__(self, code, why):
        super().__init__(why)
        self.code, self.why = code, why


class Service(grpc.GenericRpcHandler):
    """Serves "/package.Service/Method" by the methods of an object: Method(Fields) -> bytes, or Refused."""

    def __init__(self, target):
        self.target = target

    def service(self, call):
        method = getattr(self.target, call.method.rsplit("/", 1)[1], None)
        if method is None:
            return None

        def answer(request, context):
            try:
                return method(Fields(request))
            except Refused as refused:
                context.abort(refused.code, refused.why)

        return grpc.unary_unary_rpc_method_handler(answer)
