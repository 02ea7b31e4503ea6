import { DefaultChatTransport, readUIMessageStream } from 'ai';

/** What `useChat` does under its hooks, at `api`. */
export function uiMessages(api) {
  const transport = new DefaultChatTransport({ api });
  const read = async (stream) => {
    let message;
    let failure;
    const onError = (error) => (failure ??= error);
    for await (message of readUIMessageStream({ stream, onError }));
    return { parts: message?.parts ?? [], metadata: message?.metadata, failure: failure?.message };
  };
  return {
    async send(text) {
      const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }];
      return read(await transport.sendMessages({ trigger: 'submit-message', chatId: 'c1', messages }));
    },
    async resume() {
      const stream = await transport.reconnectToStream({ chatId: 'c1' });
      return stream === null ? null : read(stream);
    },
  };
}
