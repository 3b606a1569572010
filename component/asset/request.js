export default ({ setTriggerValue }) => void (globalThis.turnfoldAsk = setTriggerValue);
