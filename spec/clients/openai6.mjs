// In this folder, so that the name is looked up in its node_modules.
export { OpenAI } from 'openai6';
