export default ({ setTriggerValue }) => (globalThis.turnfoldAsk = setTriggerValue);
