# An AMQP 1.0 client. It sends values to a queue, rejects each of them once, and accepts them when
# they come back. It prints the values that it has accepted, and every error.
import sys

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container


class Worker(MessagingHandler):
    def __init__(self, url, vhost, queue, values):
        super().__init__(auto_accept=False)
        self.url, self.vhost, self.address, self.values = url, vhost, "/queues/" + queue, values

    def on_start(self, event):
        connection = event.container.connect(self.url, virtual_host="vhost:" + self.vhost, sasl_enabled=True, reconnect=False)
        event.container.create_receiver(connection, self.address)
        event.container.create_sender(connection, self.address)

    def on_sendable(self, event):
        while self.values:
            event.sender.send(Message(body=self.values.pop(0)))

    def on_message(self, event):
        if (event.message.properties or {}).get("dlo-attempt") is None:
            self.reject(event.delivery)
            return
        print("accepted", len(event.message.body), flush=True)
        self.accept(event.delivery)

    def on_transport_error(self, event):
        print("error", event.transport.condition, flush=True)

    def on_connection_error(self, event):
        print("error", event.connection.remote_condition, flush=True)

    def on_link_error(self, event):
        print("error", event.link.remote_condition, flush=True)


if __name__ == "__main__":
    Container(Worker(sys.argv[1], sys.argv[2], sys.argv[3], ['{"id": 7}', '{"id": 7, "text": "' + "x" * 400 + '"}', b'{"id": 8}'])).run()
