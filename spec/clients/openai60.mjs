export { OpenAI } from 'openai60';
